"""Warnings about the classes and capacities that choose nodes by labels. Kubernetes: pkg/registry/storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core import deprecated_node_labels


def storage_class_warnings(storage_class: Mapping[str, Any]) -> list[str]:
    """Node labels in the topologies that a storage class allows."""
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {deprecated_node_labels.DEPRECATED_LABELS[expression['key']]}"
        for index, topology in enumerate(storage_class.get("allowedTopologies") or ())
        for number, expression in enumerate(topology.get("matchLabelExpressions") or ())
        if expression.get("key") in deprecated_node_labels.DEPRECATED_LABELS
    ]


def capacity_warnings(capacity: Mapping[str, Any]) -> list[str]:
    """Node labels in the topology of a storage capacity."""
    topology = capacity.get("nodeTopology") or {}
    return deprecated_node_labels.node_label_warnings("nodeTopology", topology) + [
        f"nodeTopology.matchLabels.{label}: {deprecated_node_labels.DEPRECATED_LABELS[label]}"
        for label in sorted(topology.get("matchLabels") or ())
        if label in deprecated_node_labels.DEPRECATED_LABELS
    ]
