"""Warnings about StorageClasses and CSIStorageCapacities. Kubernetes: pkg/registry/storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core.deprecated_node_labels import DEPRECATED_LABELS, node_label_warnings


def storage_class_warnings(storage_class: Mapping[str, Any]) -> list[str]:
    """Return the warnings about deprecated node labels in a StorageClass's allowed topologies."""
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {DEPRECATED_LABELS[expression['key']]}"
        for index, topology in enumerate(storage_class.get("allowedTopologies") or ())
        for number, expression in enumerate(topology.get("matchLabelExpressions") or ())
        if expression.get("key") in DEPRECATED_LABELS
    ]


def capacity_warnings(capacity: Mapping[str, Any]) -> list[str]:
    """Return the warnings about deprecated node labels in a CSIStorageCapacity's topology."""
    topology = capacity.get("nodeTopology") or {}
    return node_label_warnings("nodeTopology", topology) + [
        f"nodeTopology.matchLabels.{label}: {DEPRECATED_LABELS[label]}"
        for label in sorted(topology.get("matchLabels") or ())
        if label in DEPRECATED_LABELS
    ]
