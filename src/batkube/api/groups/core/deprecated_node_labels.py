"""Warnings about deprecated node labels in selectors.

Kubernetes: pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batkube.api.validation.names import label_value

DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def node_label_warnings(path: str, holder: Mapping[str, Any], *, values: bool = False) -> list[str]:
    """Return the warnings about a selector's matchExpressions; with `values`, check the values, too."""
    warnings = []
    for index, expression in enumerate(holder.get("matchExpressions") or ()):
        place, key = f"{path}.matchExpressions[{index}]", expression.get("key", "")
        if key in DEPRECATED_LABELS:
            warnings.append(f"{place}.key: {key} is {DEPRECATED_LABELS[key]}")
        if values:
            for number, value in enumerate(expression.get("values") or ()):
                warnings += [f"{place}.values[{number}]: {value} is invalid, {wrong}" for wrong in label_value(value)]
    return warnings


def node_selector_term_warnings(path: str, terms: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the warnings about the terms of a node selector."""
    return [warning for index, term in enumerate(terms) for warning in node_label_warnings(f"{path}[{index}]", term)]
