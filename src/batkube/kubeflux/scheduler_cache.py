"""The picture: what a scheduler believes of a cluster, as accounts per node and as a graph to match pods on.

An account has what a node offers and what pods hold of it, pod by pod. From it follows how many whole cores, GiB and
GPUs are free, and so many of the node's vertices are free in the graph; which ones is all the same. So a change of one
pod touches one node, and two pictures with equal accounts are equal, whatever way they came about.

fluence: what is free of a node is what is allocatable less what pods ask for, in whole cores and whole GiB.
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
#: Nodes that fluence leaves out of its graph.
_EXCLUDING_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "fluence/skip")
#: How long fluence books a pod for, in seconds.
FIXED_DURATION_S = 3600
#: Resources that no vertex stands for are none of the graph's business.
_CORE_RESOURCES = (CPU, MEMORY, PODS)


class NodeOffer(NamedTuple):
    """What the graph needs to know of a node: what it has, where it stands, and whether it takes pods."""

    allocatable: tuple[tuple[str, int], ...]
    zone: str
    rack: str
    is_open: bool


def offer_of(node: KubeObject) -> NodeOffer | None:
    """Return what a node offers; None for one that is left out of the graph."""
    labels: Mapping[str, str] = labels_of(node)
    if any(label in labels for label in _EXCLUDING_LABELS):
        return None
    taints = node["spec"].get("taints") or ()
    is_repelling = any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in taints)
    conditions = node.get("status", {}).get("conditions") or ()
    is_ready = all(condition["status"] == "True" for condition in conditions if condition["type"] == "Ready")
    is_open = is_ready and not node["spec"].get("unschedulable") and not is_repelling
    allocatable = tuple(sorted((name, count) for name, count in allocatable_of(node).items() if _is_matched(name)))
    return NodeOffer(allocatable, labels.get(ZONE, ""), labels.get(RACK, ""), is_open)


def _is_matched(resource: str) -> bool:
    return resource in _CORE_RESOURCES or "/" in resource


@dataclasses.dataclass(slots=True)
class NodeAccount:
    """What is believed of a node; `offer` is None for one that is not, or no longer, in the graph."""

    offer: NodeOffer | None = None
    held: dict[Key, Amounts] = dataclasses.field(default_factory=dict)

    def requested(self) -> Amounts:
        """Return what the pods on it hold together."""
        sums: Amounts = {}
        for demand in self.held.values():
            for resource, amount in demand.items():
                if amount and _is_matched(resource):
                    sums[resource] = sums.get(resource, 0) + amount
        return sums


def cache_file(audit: Path) -> Path:
    """Return where the picture of a scheduler is written that writes its differences to `audit`."""
    return audit.with_suffix(".picture.json")


class SchedulerCache:
    """Accounts of nodes, and the graph that follows from them."""

    def __init__(self, policy: str = "lonode") -> None:
        self._counter = NodeCounter()
        self._policy = policy
        #: By name; a node that is gone and empty is forgotten.
        self.accounts: dict[str, NodeAccount] = {}
        self._node_of: dict[Key, str] = {}
        self._numbers: dict[str, int] = {}
        self._cluster_graph = ClusterGraph(has_racks=True)
        self._matcher = Matcher(self._cluster_graph.graph, policy, filters=FILTERS, writer=self._counter)
        #: Nodes whose vertices are to be put in order before the next match: whole ones, and how much is taken.
        self._outdated: dict[str, None] = {}
        self._in_graph: dict[str, tuple[NodeOffer, dict[str, int]]] = {}

    @classmethod
    def build(cls, nodes: Iterable[KubeObject], pods: Iterable[KubeObject], policy: str = "lonode") -> SchedulerCache:
        """Return the picture of a cluster, made from all its nodes and pods."""
        picture = cls(policy)
        for node in nodes:
            picture.set_node(node)
        for pod in pods:
            if node_of_pod(pod) and not is_finished(pod):
                picture.add_pod(key_of(pod), node_of_pod(pod), demand_of(pod))
        return picture

    # What is heard

    def set_node(self, node: KubeObject) -> None:
        """Take up a node, or what has become of it."""
        name, offer = node["metadata"]["name"], offer_of(node)
        account = self.accounts.get(name)
        if (None if account is None else account.offer) != offer:
            self._account(name).offer = offer
            self._mark_changed(name)

    def remove_node(self, name: str) -> None:
        """Let go of a node that is no more; pods that are still said to be on it are kept in mind."""
        account = self.accounts.get(name)
        if account is not None and account.offer is not None:
            account.offer = None
            self._mark_changed(name)

    def add_pod(self, key: Key, node: str, demand: Amounts) -> None:
        """Take note that a pod is on a node."""
        before = self._node_of.get(key)
        if before is not None and (before != node or self.accounts[node].held[key] != demand):
            self.remove_pod(key)
        elif before is not None:
            return
        self._account(node).held[key] = demand
        self._node_of[key] = node
        self._mark_changed(node)

    def remove_pod(self, key: Key) -> bool:
        """Take note that a pod is gone, ended, or not there after all; return whether it was known."""
        node = self._node_of.pop(key, None)
        if node is None:
            return False
        del self.accounts[node].held[key]
        self._mark_changed(node)
        return True

    def _account(self, name: str) -> NodeAccount:
        return self.accounts.setdefault(name, NodeAccount())

    def _mark_changed(self, name: str) -> None:
        account = self.accounts[name]
        if account.offer is None and not account.held:
            del self.accounts[name]
        self._outdated[name] = None

    # What is asked

    def match(self, demands: list[Amounts], allowed: frozenset[str] | None = None) -> list[str] | None:
        """Return a node for each pod of a group, which ask for the same; None if there is no room for all of them.

        `allowed` are the nodes that the pods may go to, None for all.
        """
        self.update_graph()
        demand = vertex_demand({name: count for name, count in demands[0].items() if _is_matched(name)})
        if any(not self._cluster_graph.graph.by_type.get(type) for type in demand):
            return None
        nodes = None if allowed is None else NodeNameConstraint(allowed)
        jobspec = pods_jobspec(len(demands), demand, FIXED_DURATION_S, nodes=nodes)
        self._matcher.match(jobspec, MatchOperation.WITHOUT_ALLOCATING, job=0)
        counts = self._counter.pop_counts()
        places = [name for name, got in counts.items() for _ in range(got["core"] // demand["core"])]
        return places[: len(demands)] if len(places) >= len(demands) else None

    def update_graph(self) -> None:
        """Bring the graph up to date with the accounts."""
        reshaped = False
        for name in self._outdated:
            account = self.accounts.get(name)
            reshaped |= self._update_vertices(name, None if account is None else account.offer)
        if reshaped:
            self._matcher.on_graph_changed()
        for name in self._outdated:
            account = self.accounts.get(name)
            if account is not None and account.offer is not None:
                self._allocate(name, account)
                self._matcher.set_status(self._cluster_graph.path(name), is_up=account.offer.is_open)
        self._outdated.clear()

    def _update_vertices(self, name: str, offer: NodeOffer | None) -> bool:
        """Give a node the vertices that it offers; return whether the graph has changed."""
        drawn = self._in_graph.get(name)
        shape = None if offer is None else offer._replace(is_open=True)
        if (None if drawn is None else drawn[0]) == shape:
            return False
        if drawn is not None:
            self._release(name)
            remove_vertex(self._matcher, self._cluster_graph.pop_node(name))
            del self._in_graph[name]
        if shape is not None and offer is not None:
            number = self._numbers.setdefault(name, len(self._numbers))
            counts = vertex_counts(dict(offer.allocatable))
            self._cluster_graph.add_node(NodeResources(name, number, counts, offer.zone, offer.rack))
            self._in_graph[name] = (shape, {})
        return True

    def _allocate(self, name: str, account: NodeAccount) -> None:
        """Let as many vertices of a node be taken as are not free, the first ones of each type."""
        offer, before = self._in_graph[name]
        taken, allocatable = account.requested(), dict(offer.allocatable)
        free = vertex_counts({resource: count - taken.get(resource, 0) for resource, count in allocatable.items()})
        wanted = {type: count - free.get(type, 0) for type, count in vertex_counts(allocatable).items()}
        if wanted == before:
            return
        self._release(name)
        vertices = [leaf for type, count in wanted.items() for leaf in self._cluster_graph.leaves(name, type)[:count]]
        allocate_vertices(self._matcher, vertices, JobWindow(self._numbers[name] + 1, 0, GRAPH_END, 0))
        self._in_graph[name] = (offer, wanted)

    def _release(self, name: str) -> None:
        offer, taken = self._in_graph[name]
        if any(taken.values()):
            self._matcher.cancel(self._numbers[name] + 1)
            self._in_graph[name] = (offer, {})

    def free_vertices(self) -> dict[str, dict[str, int]]:
        """Return how many vertices of each type are free on each node of the graph, by the graph itself."""
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
