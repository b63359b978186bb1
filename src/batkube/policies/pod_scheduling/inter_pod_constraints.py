"""Constraints on a pod's node that depend on other pods: affinity, anti-affinity, spread, host ports.

Required terms only; preferred ones are ignored. Imitates kube-scheduler's plugins (pkg/scheduler/framework/plugins)
interpodaffinity/filtering.go, podtopologyspread/filtering.go and nodeports/node_ports.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from batkube.cluster.mapping import POD
from batkube.cluster.nodes.constraints import NodeConstraints
from batkube.cluster.object_meta import is_being_deleted, labels_of
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.host_ports import PORTS_TAKEN, HostPort, conflict, host_ports_of
from batkube.cluster.selectors import LabelSelector, Operator, Requirement, selector_of
from batkube.cluster.store import DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.policies.pod_scheduling.node_table import Mask, NodeTable

AFFINITY_MISMATCH = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_MISMATCH = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY_MISMATCH = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD_MISMATCH = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL_MISSING = f"{SPREAD_MISMATCH} (missing required label)"


class AffinityTerm:
    """A required term of a pod's affinity or anti-affinity: a selector of pods, and a topology."""

    def __init__(self, term: KubeObject, owner: KubeObject, store: Store) -> None:
        self.topology_key: str = term["topologyKey"]
        self._selector = selector_of(term.get("labelSelector"))
        self._namespaces = _namespaces(term, owner, store)

    def matches(self, pod: KubeObject) -> bool:
        """Return whether the term selects `pod`."""
        metadata = pod["metadata"]
        return metadata["namespace"] in self._namespaces and self._selector.matches(metadata.get("labels"))


def _namespaces(term: KubeObject, owner: KubeObject, store: Store) -> frozenset[str]:
    names = list(term.get("namespaces") or ())
    if term.get("namespaceSelector") is not None:
        selector = selector_of(term["namespaceSelector"])
        namespaces = store.entries("namespaces").items()
        names += [str(key) for key, (namespace, _) in namespaces if selector.matches(labels_of(namespace))]
    elif not names:
        names = [owner["metadata"]["namespace"]]
    return frozenset(names)


def _required(pod: KubeObject, kind: str) -> Sequence[KubeObject]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    terms: Sequence[KubeObject] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return terms


def _spread_constraints(pod: KubeObject) -> list[KubeObject]:
    constraints = pod["spec"].get("topologySpreadConstraints") or ()
    return [each for each in constraints if each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]


class InterPodConstraints:
    """Checks the constraints between a new pod and the bound pods."""

    def __init__(self, store: Store, table: NodeTable) -> None:
        self._store = store
        self._table = table
        #: Bound pods with required anti-affinity.
        self._with_anti_affinity: dict[Key, None] = {}
        #: Bound pods with host ports.
        self._with_ports: dict[Key, list[HostPort]] = {}
        store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED or is_finished(pod):
                self._with_anti_affinity.pop(key, None)
                self._with_ports.pop(key, None)
            elif node_of_pod(pod):
                if _required(pod, "podAntiAffinity"):
                    self._with_anti_affinity[key] = None
                if ports := host_ports_of(pod):
                    self._with_ports[key] = ports

    def apply_to(self, pod: KubeObject) -> bool:
        """Return whether the nodes that accept `pod` depend on other pods."""
        return bool(
            self._with_anti_affinity
            or (self._with_ports and host_ports_of(pod))
            or _spread_constraints(pod)
            or _required(pod, "podAffinity")
            or _required(pod, "podAntiAffinity")
        )

    def rejections(self, pod: KubeObject, open_nodes: Mask) -> list[tuple[str, Mask]]:
        """Return the nodes of `open_nodes` that reject the pod, by reason; each node at most once."""
        if not self.apply_to(pod):
            return []
        bound = self._bound_pods()
        result: list[tuple[str, Mask]] = []
        remaining = open_nodes.copy()
        for reason, rejected in (
            (PORTS_TAKEN, self._with_port_conflict(pod)),
            *self._failing_spread(pod, bound),
            (AFFINITY_MISMATCH, self._failing_affinity(pod, bound)),
            (ANTI_AFFINITY_MISMATCH, self._failing_anti_affinity(pod, bound)),
            (EXISTING_ANTI_AFFINITY_MISMATCH, self._failing_existing_anti_affinity(pod)),
        ):
            newly_rejected = rejected & remaining
            if newly_rejected.any():
                result.append((reason, newly_rejected))
                remaining &= ~newly_rejected
        return result

    def _bound_pods(self) -> list[tuple[KubeObject, int]]:
        allocations = self._table.allocations
        pods = self._store.objects(POD, list(allocations))
        return [(pod, allocation.column) for pod, allocation in zip(pods, allocations.values(), strict=True)]

    def _topology_values(self, topology_key: str) -> list[str | None]:
        """Return the value of a node label by column; None if a node lacks it."""
        return [None if node is None else labels_of(node).get(topology_key) for node in self._table.nodes]

    def _matches_by_topology(
        self, terms: Iterable[AffinityTerm], bound: Sequence[tuple[KubeObject, int]]
    ) -> list[tuple[AffinityTerm, Counter[str]]]:
        """Return each term with the number of pods that it selects, by value of its topology key."""
        pairs = []
        for term in terms:
            values = self._topology_values(term.topology_key)
            matches = (values[column] for pod, column in bound if term.matches(pod))
            pairs.append((term, Counter(value for value in matches if value is not None)))
        return pairs

    def _failing_affinity(self, pod: KubeObject, bound: Sequence[tuple[KubeObject, int]]) -> Mask:
        terms = [AffinityTerm(term, pod, self._store) for term in _required(pod, "podAffinity")]
        rejected = np.zeros(len(self._table.nodes), dtype=np.bool_)
        counts_by_term = self._matches_by_topology(terms, bound)
        # The first pod that matches its own terms may use any node with the topology keys.
        is_first = not any(counts for _, counts in counts_by_term) and all(term.matches(pod) for term in terms)
        for term, counts in counts_by_term:
            values = self._topology_values(term.topology_key)
            rejected |= _mask(value is None or not (is_first or counts[value]) for value in values)
        return rejected

    def _failing_anti_affinity(self, pod: KubeObject, bound: Sequence[tuple[KubeObject, int]]) -> Mask:
        terms = [AffinityTerm(term, pod, self._store) for term in _required(pod, "podAntiAffinity")]
        rejected = np.zeros(len(self._table.nodes), dtype=np.bool_)
        for term, counts in self._matches_by_topology(terms, bound):
            values = self._topology_values(term.topology_key)
            rejected |= _mask(value is not None and counts[value] > 0 for value in values)
        return rejected

    def _failing_existing_anti_affinity(self, pod: KubeObject) -> Mask:
        """Return the nodes that the anti-affinity of a bound pod rejects for this one."""
        rejected = np.zeros(len(self._table.nodes), dtype=np.bool_)
        for key in self._with_anti_affinity:
            other, allocation = self._store.get(POD, key), self._table.allocations.get(key)
            if other is None or allocation is None:
                continue
            for term in (AffinityTerm(term, other, self._store) for term in _required(other, "podAntiAffinity")):
                if term.matches(pod):
                    values = self._topology_values(term.topology_key)
                    own = values[allocation.column]
                    rejected |= _mask(own is not None and value == own for value in values)
        return rejected

    def _with_port_conflict(self, pod: KubeObject) -> Mask:
        """Return the nodes on which a bound pod has a host port that this one requests."""
        rejected, requested = np.zeros(len(self._table.nodes), dtype=np.bool_), host_ports_of(pod)
        for key, ports in self._with_ports.items() if requested else ():
            allocation = self._table.allocations.get(key)
            if allocation is not None and conflict(requested, ports):
                rejected[allocation.column] = True
        return rejected

    def _failing_spread(self, pod: KubeObject, bound: Sequence[tuple[KubeObject, int]]) -> list[tuple[str, Mask]]:
        """Return the nodes that lack a topology label, or on which a constraint's skew would be exceeded."""
        constraints = _spread_constraints(pod)
        rules = NodeConstraints(pod["spec"])
        has_all_labels = _mask(node is not None for node in self._table.nodes)
        for constraint in constraints:
            has_all_labels &= _mask(value is not None for value in self._topology_values(constraint["topologyKey"]))
        result = []
        for constraint in constraints:
            values = self._topology_values(constraint["topologyKey"])
            result.append((SPREAD_LABEL_MISSING, _mask(value is None for value in values)))
            counted = has_all_labels & self._counted_in_spread(constraint, rules)
            result.append((SPREAD_MISMATCH, self._skewed(pod, constraint, bound, counted)))
        return result

    def _counted_in_spread(self, constraint: KubeObject, rules: NodeConstraints) -> Mask:
        """Return the nodes whose pods are counted.

        By default these are the nodes that match the pod's node affinity, regardless of their taints.
        """
        honors_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
        honors_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
        return _mask(
            node is not None
            and (not honors_affinity or rules.accepts_labels(node))
            and (not honors_taints or rules.accepts_taints(node))
            for node in self._table.nodes
        )

    def _skewed(
        self, pod: KubeObject, constraint: KubeObject, bound: Sequence[tuple[KubeObject, int]], counted: Mask
    ) -> Mask:
        selector, namespace = _spread_selector(constraint, pod), pod["metadata"]["namespace"]
        values = self._topology_values(constraint["topologyKey"])
        counts = Counter({value: 0 for column, value in enumerate(values) if value is not None and counted[column]})
        for other, column in bound:
            metadata, value = other["metadata"], values[column]
            if value is None or not counted[column] or metadata["namespace"] != namespace:
                continue
            counts[value] += selector.matches(metadata.get("labels")) and not is_being_deleted(other)
        minimum = min(counts.values(), default=0) if len(counts) >= constraint.get("minDomains", 1) else 0
        own = int(selector.matches(pod["metadata"].get("labels")))
        limit = constraint["maxSkew"] + minimum - own
        return _mask(value is not None and counts[value] > limit for value in values)


def _mask(values: Iterable[bool]) -> Mask:
    mask: Mask = np.fromiter(values, dtype=np.bool_)
    return mask


def _spread_selector(constraint: KubeObject, pod: KubeObject) -> LabelSelector:
    """Return the selector of the pods that are counted: `labelSelector` and `matchLabelKeys`."""
    selector = selector_of(constraint.get("labelSelector"))
    labels = labels_of(pod)
    same_labels = [
        Requirement(key, Operator.IN, (labels[key],)) for key in constraint.get("matchLabelKeys") or () if key in labels
    ]
    return LabelSelector([*selector.requirements, *same_labels]) if same_labels else selector
