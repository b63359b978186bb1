"""Scheduling constraints other than resources: node name, labels, affinity, taints, cordons.

These are the rules of kube-scheduler's filter plugins NodeName, NodeUnschedulable, TaintToleration and NodeAffinity
(Kubernetes: pkg/scheduler/framework/plugins), with their messages. Pods with equal `constraints_key` can share one
`NodeConstraints`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from batkube.cluster.object_meta import labels_of
from batkube.cluster.selectors import OBJECT_OPERATORS, LabelSelector, Operator, Requirement
from batkube.cluster.store import KubeObject
from batkube.platforms.model import REPELLING_EFFECTS

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"

NODE_NAME_MISMATCH = "node(s) didn't match the requested node name"
CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
AFFINITY_MISMATCH = "node(s) didn't match Pod's node affinity/selector"

_OPERATORS = OBJECT_OPERATORS | {"Gt": Operator.GREATER_THAN, "Lt": Operator.LESS_THAN}
_encode = msgspec.json.Encoder(order="sorted").encode


def find_toleration(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first toleration that matches `taint`, or None (Kubernetes: Toleration.ToleratesTaint)."""
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint["effect"]:
            continue
        if toleration.get("key") and toleration["key"] != taint["key"]:
            continue
        operator = toleration.get("operator", "Equal")
        if operator == "Exists" or (operator == "Equal" and toleration.get("value", "") == taint.get("value", "")):
            return toleration
    return None


class NodeTerm:
    """One term of a node affinity: expressions on labels and on the node name, all of which must hold."""

    def __init__(self, term: Mapping[str, Any]) -> None:
        self._labels = _selector(term.get("matchExpressions") or ())
        self._fields = _selector(term.get("matchFields") or ())
        #: An empty term matches no node.
        self._is_empty = not self._labels and not self._fields

    def matches(self, node: KubeObject) -> bool:
        """Return whether the term holds for `node`."""
        metadata = node["metadata"]
        if self._is_empty or not self._labels.matches(metadata.get("labels")):
            return False
        return self._fields.matches({"metadata.name": metadata["name"]})


def _selector(expressions: Sequence[Mapping[str, Any]]) -> LabelSelector:
    return LabelSelector(
        Requirement(expression["key"], _OPERATORS[expression["operator"]], tuple(expression.get("values") or ()))
        for expression in expressions
    )


class NodeConstraints:
    """The constraints of a pod on its node, resources aside."""

    def __init__(self, spec: KubeObject) -> None:
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        self._node_name: str = spec.get("nodeName", "")
        self._labels: dict[str, str] = spec.get("nodeSelector") or {}
        self._terms = None if required is None else [NodeTerm(term) for term in required["nodeSelectorTerms"]]
        self._tolerations: Sequence[KubeObject] = spec.get("tolerations") or ()
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        #: The preferred terms, with their weights.
        self.preferences = [
            (preferred_term["weight"], NodeTerm(preferred_term["preference"])) for preferred_term in preferred
        ]

    def rejection_reason(self, node: KubeObject) -> str | None:
        """Return the first reason why the pod may not run on `node`, in kube-scheduler's order, or None."""
        for check in _CHECKS:
            reason = check(self, node)
            if reason is not None:
                return reason
        return None

    def _check_name(self, node: KubeObject) -> str | None:
        return NODE_NAME_MISMATCH if self._node_name and self._node_name != node["metadata"]["name"] else None

    def _check_cordon(self, node: KubeObject) -> str | None:
        if not node["spec"].get("unschedulable"):
            return None
        taint = {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}
        return None if find_toleration(self._tolerations, taint) is not None else CORDONED

    def _check_taints(self, node: KubeObject) -> str | None:
        for taint in node["spec"].get("taints") or ():
            if taint["effect"] in REPELLING_EFFECTS and find_toleration(self._tolerations, taint) is None:
                return TAINTED
        return None

    def _check_affinity(self, node: KubeObject) -> str | None:
        labels = labels_of(node)
        if any(labels.get(name) != value for name, value in self._labels.items()):
            return AFFINITY_MISMATCH
        if self._terms is not None and not any(term.matches(node) for term in self._terms):
            return AFFINITY_MISMATCH
        return None

    def accepts_labels(self, node: KubeObject) -> bool:
        """Return whether `node` has the labels that the pod's selector and affinity require."""
        return self._check_affinity(node) is None

    def accepts_taints(self, node: KubeObject) -> bool:
        """Return whether the pod tolerates all taints of `node`, including that of a cordon."""
        return self._check_taints(node) is None and self._check_cordon(node) is None

    def preference_score(self, node: KubeObject) -> int:
        """Return a score of `node`: the weights of matching preferred terms, less the PreferNoSchedule taints."""
        weight: int = sum(weight for weight, term in self.preferences if term.matches(node))
        avoided: int = sum(
            taint["effect"] == "PreferNoSchedule" and find_toleration(self._tolerations, taint) is None
            for taint in node["spec"].get("taints") or ()
        )
        return weight - avoided


_CHECKS: tuple[Callable[[NodeConstraints, KubeObject], str | None], ...] = (
    NodeConstraints._check_cordon,
    NodeConstraints._check_name,
    NodeConstraints._check_taints,
    NodeConstraints._check_affinity,
)


def constraints_key(spec: KubeObject) -> bytes:
    """Return a key that is equal for pods with equal constraints."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    return _encode((spec.get("nodeName"), spec.get("nodeSelector"), affinity, spec.get("tolerations")))
