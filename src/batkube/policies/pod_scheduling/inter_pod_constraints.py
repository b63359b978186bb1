"""Where a pod may go because of the pods that are there: pod affinity and anti-affinity, and topology spread.

Only what is required is heeded, not what is preferred. Kubernetes: pkg/scheduler/framework/plugins, interpodaffinity
and podtopologyspread.
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
    """One required term of a pod's affinity or anti-affinity: some pods, and how near is near."""

    def __init__(self, term: KubeObject, owner: KubeObject, store: Store) -> None:
        self.topology_key: str = term["topologyKey"]
        self._selector = selector_of(term.get("labelSelector"))
        self._namespaces = _namespaces(term, owner, store)

    def matches(self, pod: KubeObject) -> bool:
        """Return whether the term is about `pod`."""
        metadata = pod["metadata"]
        return metadata["namespace"] in self._namespaces and self._selector.matches(metadata.get("labels"))


def _namespaces(term: KubeObject, owner: KubeObject, store: Store) -> frozenset[str]:
    named = list(term.get("namespaces") or ())
    chosen = term.get("namespaceSelector")
    if chosen is not None:
        selector = selector_of(chosen)
        every = store.entries("namespaces").items()
        named += [str(key) for key, (one, _) in every if selector.matches(one["metadata"].get("labels"))]
    elif not named:
        named = [owner["metadata"]["namespace"]]
    return frozenset(named)


def _required(pod: KubeObject, kind: str) -> Sequence[KubeObject]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    terms: Sequence[KubeObject] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return terms


def _constraints(pod: KubeObject) -> list[KubeObject]:
    every = pod["spec"].get("topologySpreadConstraints") or ()
    return [one for one in every if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]


class InterPodConstraints:
    """Knows what bound pods have to say about those that come."""

    def __init__(self, store: Store, table: NodeTable) -> None:
        self._store = store
        self._table = table
        #: Bound pods that will not have certain others near them.
        self._with_anti_affinity: dict[Key, None] = {}
        #: Bound pods that have ports of their nodes.
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
        """Return whether it matters to `pod` at all what other pods there are."""
        return bool(
            self._with_anti_affinity
            or (self._with_ports and host_ports_of(pod))
            or _constraints(pod)
            or _required(pod, "podAffinity")
            or _required(pod, "podAntiAffinity")
        )

    def rejections(self, pod: KubeObject, open_nodes: Mask) -> list[tuple[str, Mask]]:
        """Return why the pod may not go to some of the nodes that are open to it, and which; each node at most once."""
        if not self.apply_to(pod):
            return []
        bound = self._bound_pods()
        result: list[tuple[str, Mask]] = []
        left = open_nodes.copy()
        for reason, refused in (
            (PORTS_TAKEN, self._with_port_conflict(pod)),
            *self._failing_spread(pod, bound),
            (AFFINITY_MISMATCH, self._failing_affinity(pod, bound)),
            (ANTI_AFFINITY_MISMATCH, self._failing_anti_affinity(pod, bound)),
            (EXISTING_ANTI_AFFINITY_MISMATCH, self._failing_existing_anti_affinity(pod)),
        ):
            hit = refused & left
            if hit.any():
                result.append((reason, hit))
                left &= ~hit
        return result

    def _bound_pods(self) -> list[tuple[KubeObject, int]]:
        holdings = self._table.allocations
        pods = self._store.objects(POD, list(holdings))
        return [(pod, held.column) for pod, held in zip(pods, holdings.values(), strict=True)]

    def _topology_values(self, topology_key: str) -> list[str | None]:
        """Return the value of a label by column; None where a node lacks it."""
        return [None if node is None else labels_of(node).get(topology_key) for node in self._table.nodes]

    def _matches_by_topology(
        self, terms: Iterable[AffinityTerm], bound: Sequence[tuple[KubeObject, int]]
    ) -> list[tuple[AffinityTerm, Counter[str]]]:
        """Return for each term how many pods it means by the value of its topology."""
        pairs = []
        for term in terms:
            values = self._topology_values(term.topology_key)
            means = (values[column] for pod, column in bound if term.matches(pod))
            pairs.append((term, Counter(value for value in means if value is not None)))
        return pairs

    def _failing_affinity(self, pod: KubeObject, bound: Sequence[tuple[KubeObject, int]]) -> Mask:
        terms = [AffinityTerm(one, pod, self._store) for one in _required(pod, "podAffinity")]
        refused = np.zeros(len(self._table.nodes), dtype=np.bool_)
        near = self._matches_by_topology(terms, bound)
        # The first of its kind may go anywhere where the topology exists.
        is_first = not any(counts for _, counts in near) and all(term.matches(pod) for term in terms)
        for term, counts in near:
            values = self._topology_values(term.topology_key)
            refused |= _mask(value is None or not (is_first or counts[value]) for value in values)
        return refused

    def _failing_anti_affinity(self, pod: KubeObject, bound: Sequence[tuple[KubeObject, int]]) -> Mask:
        terms = [AffinityTerm(one, pod, self._store) for one in _required(pod, "podAntiAffinity")]
        refused = np.zeros(len(self._table.nodes), dtype=np.bool_)
        for term, counts in self._matches_by_topology(terms, bound):
            values = self._topology_values(term.topology_key)
            refused |= _mask(value is not None and counts[value] > 0 for value in values)
        return refused

    def _failing_existing_anti_affinity(self, pod: KubeObject) -> Mask:
        """Return the nodes near which some bound pod will not have this one."""
        refused = np.zeros(len(self._table.nodes), dtype=np.bool_)
        for key in self._with_anti_affinity:
            other, held = self._store.get(POD, key), self._table.allocations.get(key)
            if other is None or held is None:
                continue
            for one in _required(other, "podAntiAffinity"):
                term = AffinityTerm(one, other, self._store)
                if term.matches(pod):
                    values = self._topology_values(term.topology_key)
                    own = values[held.column]
                    refused |= _mask(own is not None and value == own for value in values)
        return refused

    def _with_port_conflict(self, pod: KubeObject) -> Mask:
        """Return the nodes of which some bound pod has a port that this one wants."""
        refused, wanted = np.zeros(len(self._table.nodes), dtype=np.bool_), host_ports_of(pod)
        for key, ports in self._with_ports.items() if wanted else ():
            held = self._table.allocations.get(key)
            if held is not None and conflict(wanted, ports):
                refused[held.column] = True
        return refused

    def _failing_spread(self, pod: KubeObject, bound: Sequence[tuple[KubeObject, int]]) -> list[tuple[str, Mask]]:
        """Return the nodes on which the pod would make a spread too uneven, or that have no place in it."""
        constraints = _constraints(pod)
        rules = NodeConstraints(pod["spec"])
        everywhere = _mask(node is not None for node in self._table.nodes)
        for one in constraints:
            everywhere &= _mask(value is not None for value in self._topology_values(one["topologyKey"]))
        result = []
        for one in constraints:
            values = self._topology_values(one["topologyKey"])
            result.append((SPREAD_LABEL_MISSING, _mask(value is None for value in values)))
            counted = everywhere & self._counted_in_spread(one, rules)
            result.append((SPREAD_MISMATCH, self._skewed(pod, one, bound, counted)))
        return result

    def _counted_in_spread(self, constraint: KubeObject, rules: NodeConstraints) -> Mask:
        """Return the nodes whose pods are counted: by default those of the right labels, whatever their taints."""
        heeds_labels = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
        heeds_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
        return _mask(
            node is not None
            and (not heeds_labels or rules.accepts_labels(node))
            and (not heeds_taints or rules.accepts_taints(node))
            for node in self._table.nodes
        )

    def _skewed(
        self, pod: KubeObject, constraint: KubeObject, bound: Sequence[tuple[KubeObject, int]], counted: Mask
    ) -> Mask:
        selector, namespace = _spread_selector(constraint, pod), pod["metadata"]["namespace"]
        values = self._topology_values(constraint["topologyKey"])
        numbers = Counter({value: 0 for column, value in enumerate(values) if value is not None and counted[column]})
        for other, column in bound:
            metadata, value = other["metadata"], values[column]
            if value is None or not counted[column] or metadata["namespace"] != namespace:
                continue
            numbers[value] += selector.matches(metadata.get("labels")) and not is_being_deleted(other)
        least = min(numbers.values(), default=0) if len(numbers) >= constraint.get("minDomains", 1) else 0
        own = int(selector.matches(pod["metadata"].get("labels")))
        most = constraint["maxSkew"] + least - own
        return _mask(value is not None and numbers[value] > most for value in values)


def _mask(hits: Iterable[bool]) -> Mask:
    mask: Mask = np.fromiter(hits, dtype=np.bool_)
    return mask


def _spread_selector(constraint: KubeObject, pod: KubeObject) -> LabelSelector:
    """Return which pods are counted: those of the selector that have the same values of certain labels."""
    chosen = selector_of(constraint.get("labelSelector"))
    labels = labels_of(pod)
    same = [
        Requirement(key, Operator.IN, (labels[key],)) for key in constraint.get("matchLabelKeys") or () if key in labels
    ]
    return LabelSelector([*chosen.requirements, *same]) if same else chosen
