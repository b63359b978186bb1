"""Warnings about the classes and capacities that choose nodes by labels. Kubernetes: pkg/registry/storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core import node_labels


def of_storage_class(storage_class: Mapping[str, Any]) -> list[str]:
    """Node labels in the topologies that a storage class allows."""
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {node_labels.DEPRECATED[expression['key']]}"
        for index, topology in enumerate(storage_class.get("allowedTopologies") or ())
        for number, expression in enumerate(topology.get("matchLabelExpressions") or ())
        if expression.get("key") in node_labels.DEPRECATED
    ]


def of_capacity(capacity: Mapping[str, Any]) -> list[str]:
    """Node labels in the topology of a storage capacity."""
    topology = capacity.get("nodeTopology") or {}
    return node_labels.of_expressions("nodeTopology", topology) + [
        f"nodeTopology.matchLabels.{label}: {node_labels.DEPRECATED[label]}"
        for label in sorted(topology.get("matchLabels") or ())
        if label in node_labels.DEPRECATED
    ]
