"""A scheduler's cache of the cluster: an account per node, and a graph on which pods are matched.

An account has what a node offers and what each pod on it holds. From these follow the free cores,
GiB and GPUs of the node, in whole units, and as many vertices of the node are free in the graph,
whichever ones. A change of one pod therefore affects one node, and two caches with equal accounts
are equal, however they were built.

As in fluence, the free resources of a node are its allocatable ones minus the requests of its pods,
in whole cores and GiB (flux-k8s src/fluence/utils/utils.go).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from batkube.cluster.object_meta import key_of, labels_of
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.resources import Amounts, allocatable_of, demand_of
from batkube.cluster.store import Key, KubeObject
from batkube.graph.cluster_graph import (
    FILTERS,
    ClusterGraph,
    NodeCounter,
    NodeNameConstraint,
    NodeResources,
    allocate_vertices,
    pods_jobspec,
    vertex_counts,
    vertex_demand,
)
from batkube.graph.matching.booking import JobWindow
from batkube.graph.matching.matcher import GRAPH_END, Matcher, MatchOperation
from batkube.graph.matching.subgraphs import remove_vertex
from batkube.kernel.quantities import CPU, MEMORY, PODS

ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
#: Labels of nodes that fluence leaves out of its graph.
_EXCLUDING_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "fluence/skip")
#: The duration of fluence's bookings in seconds.
FIXED_DURATION_S = 3600
#: The resources that the graph contains, besides extended resources.
_CORE_RESOURCES = (CPU, MEMORY, PODS)


class NodeOffer(NamedTuple):
    """What the graph needs of a node: its resources, its location, and whether it accepts pods."""

    allocatable: tuple[tuple[str, int], ...]
    zone: str
    rack: str
    is_open: bool


def offer_of(node: KubeObject) -> NodeOffer | None:
    """Return what a node offers, or None if it is left out of the graph."""
    labels: Mapping[str, str] = labels_of(node)
    if any(label in labels for label in _EXCLUDING_LABELS):
        return None
    taints = node["spec"].get("taints") or ()
    has_taint = any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in taints)
    conditions = node.get("status", {}).get("conditions") or ()
    is_ready = all(condition["status"] == "True" for condition in conditions if condition["type"] == "Ready")
    is_open = is_ready and not node["spec"].get("unschedulable") and not has_taint
    allocatable = tuple(sorted((name, count) for name, count in allocatable_of(node).items() if _is_matched(name)))
    return NodeOffer(allocatable, labels.get(ZONE, ""), labels.get(RACK, ""), is_open)


def _is_matched(resource: str) -> bool:
    return resource in _CORE_RESOURCES or "/" in resource


@dataclasses.dataclass(slots=True)
class NodeAccount:
    """A node in the cache. `offer` is None if the node is not in the graph, or not any more."""

    offer: NodeOffer | None = None
    held: dict[Key, Amounts] = dataclasses.field(default_factory=dict)

    def requested(self) -> Amounts:
        """Return the total requests of the pods on the node."""
        sums: Amounts = {}
        for demand in self.held.values():
            for resource, amount in demand.items():
                if amount and _is_matched(resource):
                    sums[resource] = sums.get(resource, 0) + amount
        return sums


def cache_file(audit: Path) -> Path:
    """Return the cache file of a scheduler that writes its differences to `audit`."""
    return audit.with_suffix(".picture.json")


class SchedulerCache:
    """Accounts of nodes, and the graph that follows from them."""

    def __init__(self, policy: str = "lonode") -> None:
        self._counter = NodeCounter()
        self._policy = policy
        #: By node name. Accounts of deleted nodes without pods are removed.
        self.accounts: dict[str, NodeAccount] = {}
        self._node_of: dict[Key, str] = {}
        self._numbers: dict[str, int] = {}
        self._cluster_graph = ClusterGraph(has_racks=True)
        self._matcher = Matcher(self._cluster_graph.graph, policy, filters=FILTERS, writer=self._counter)
        #: Nodes whose vertices must be updated before the next match.
        self._outdated: dict[str, None] = {}
        #: By node in the graph, the offer it was created from and its allocated vertices by type.
        self._in_graph: dict[str, tuple[NodeOffer, dict[str, int]]] = {}

    @classmethod
    def build(cls, nodes: Iterable[KubeObject], pods: Iterable[KubeObject], policy: str = "lonode") -> SchedulerCache:
        """Return a cache of a cluster from all its nodes and pods."""
        cache = cls(policy)
        for node in nodes:
            cache.set_node(node)
        for pod in pods:
            if node_of_pod(pod) and not is_finished(pod):
                cache.add_pod(key_of(pod), node_of_pod(pod), demand_of(pod))
        return cache

    def set_node(self, node: KubeObject) -> None:
        """Add or update a node."""
        name, offer = node["metadata"]["name"], offer_of(node)
        account = self.accounts.get(name)
        if (None if account is None else account.offer) != offer:
            self._account(name).offer = offer
            self._mark_changed(name)

    def remove_node(self, name: str) -> None:
        """Remove a node. Its pods stay in the account until they are removed."""
        account = self.accounts.get(name)
        if account is not None and account.offer is not None:
            account.offer = None
            self._mark_changed(name)

    def add_pod(self, key: Key, node: str, demand: Amounts) -> None:
        """Add a pod to a node, or update it."""
        previous = self._node_of.get(key)
        if previous == node and self.accounts[node].held[key] == demand:
            return
        self.remove_pod(key)
        self._account(node).held[key] = demand
        self._node_of[key] = node
        self._mark_changed(node)

    def remove_pod(self, key: Key) -> None:
        """Remove a pod from its node."""
        node = self._node_of.pop(key, None)
        if node is not None:
            del self.accounts[node].held[key]
            self._mark_changed(node)

    def _account(self, name: str) -> NodeAccount:
        return self.accounts.setdefault(name, NodeAccount())

    def _mark_changed(self, name: str) -> None:
        account = self.accounts[name]
        if account.offer is None and not account.held:
            del self.accounts[name]
        self._outdated[name] = None

    def match(self, demands: list[Amounts], allowed: frozenset[str] | None = None) -> list[str] | None:
        """Return a node for each pod of a group, or None if they do not all fit.

        The pods have equal demands. `allowed` are the nodes that they may use, None for all.
        """
        self.update_graph()
        demand = vertex_demand({name: count for name, count in demands[0].items() if _is_matched(name)})
        if any(not self._cluster_graph.graph.by_type.get(type) for type in demand):
            return None
        nodes = None if allowed is None else NodeNameConstraint(allowed)
        jobspec = pods_jobspec(len(demands), demand, FIXED_DURATION_S, nodes=nodes)
        self._matcher.match(jobspec, MatchOperation.WITHOUT_ALLOCATING, job=0)
        counts = self._counter.pop_counts()
        slots = [name for name, by_type in counts.items() for _ in range(by_type["core"] // demand["core"])]
        return slots[: len(demands)] if len(slots) >= len(demands) else None

    def update_graph(self) -> None:
        """Update the graph to the accounts."""
        has_changed = False
        for name in self._outdated:
            account = self.accounts.get(name)
            has_changed |= self._update_vertices(name, None if account is None else account.offer)
        if has_changed:
            self._matcher.on_graph_changed()
        for name in self._outdated:
            account = self.accounts.get(name)
            if account is not None and account.offer is not None:
                self._allocate(name, account)
                self._matcher.set_status(self._cluster_graph.path(name), is_up=account.offer.is_open)
        self._outdated.clear()

    def _update_vertices(self, name: str, offer: NodeOffer | None) -> bool:
        """Replace the vertices of a node if its offer has changed; return whether it has."""
        # Whether the node is open is a status of its vertex.
        offer = None if offer is None else offer._replace(is_open=True)
        current, _ = self._in_graph.get(name, (None, {}))
        if current == offer:
            return False
        if current is not None:
            self._release(name)
            remove_vertex(self._matcher, self._cluster_graph.pop_node(name))
            del self._in_graph[name]
        if offer is not None:
            number = self._numbers.setdefault(name, len(self._numbers))
            counts = vertex_counts(dict(offer.allocatable))
            self._cluster_graph.add_node(NodeResources(name, number, counts, offer.zone, offer.rack))
            self._in_graph[name] = (offer, {})
        return True

    def _allocate(self, name: str, account: NodeAccount) -> None:
        """Allocate as many vertices of a node as its pods hold, the first ones of each type."""
        offer, current = self._in_graph[name]
        requested, allocatable = account.requested(), dict(offer.allocatable)
        free = vertex_counts({resource: count - requested.get(resource, 0) for resource, count in allocatable.items()})
        allocated = {type: count - free.get(type, 0) for type, count in vertex_counts(allocatable).items()}
        if allocated == current:
            return
        self._release(name)
        vertices = [
            leaf for type, count in allocated.items() for leaf in self._cluster_graph.leaves(name, type)[:count]
        ]
        allocate_vertices(self._matcher, vertices, JobWindow(self._numbers[name] + 1, 0, GRAPH_END, 0))
        self._in_graph[name] = (offer, allocated)

    def _release(self, name: str) -> None:
        offer, allocated = self._in_graph[name]
        if any(allocated.values()):
            self._matcher.cancel(self._numbers[name] + 1)
            self._in_graph[name] = (offer, {})

    def free_vertices(self) -> dict[str, dict[str, int]]:
        """Return the number of free vertices in the graph by node and type, without closed nodes."""
        self.update_graph()
        ledger = self._matcher.ledger
        return {
            name: {
                type: sum(ledger.free(leaf, 0, 1) > 0 for leaf in self._cluster_graph.leaves(name, type))
                for type in vertex_counts(dict(self._in_graph[name][0].allocatable))
            }
            for name in sorted(self._in_graph)
            if self._matcher.graph.is_up[self._cluster_graph.node_vertices[name]]
        }
