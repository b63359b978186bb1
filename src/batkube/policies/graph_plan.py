"""A plan on a graph: which job holds which part of it, now and later. Used by `policy:fluxion`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from batkube.graph.cluster_graph import (
    FILTERS,
    ClusterGraph,
    NodeCounter,
    NodeNameConstraint,
    NodeResources,
    allocate_vertices,
    leaves_of_node,
    node_vertices,
    nodes_jobspec,
    pods_jobspec,
    vertex_counts,
    vertex_demand,
)
from batkube.graph.formats.reader import read_graph
from batkube.graph.matching.booking import JobWindow
from batkube.graph.matching.matcher import Matcher, MatchOperation
from batkube.graph.requests.jobspec import Jobspec, VertexRequest
from batkube.kernel.intervals import mask_of
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.interface import Running, View
from batkube.policies.machine_room import MachinePlacement, MachineRoom
from batkube.policies.rooms import Placement
from batkube.workloads.model import Job

ZONE, RACK, SOCKETS = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack", "batkube.io/sockets"
#: 146 years in nanoseconds, longer than any run.
_GRAPH_END = 2**62


class GraphPlan:
    """A matcher on the graph of the machines, and the number of each job in it."""

    def __init__(
        self, machines: Sequence[Machine], policy: str, file: Path | None, format: str, *, takes_nodes: bool
    ) -> None:
        self._takes_nodes = takes_nodes
        self._counter = NodeCounter()
        if file is None:
            cluster_graph = _cluster_graph(machines, takes_nodes)
            graph, vertices = cluster_graph.graph, cluster_graph.node_vertices
        else:
            graph = read_graph(file, format)
            vertices = node_vertices(graph, [machine.name for machine in machines], file)
        self._matcher = Matcher(graph, policy, filters=FILTERS, writer=self._counter, end=_GRAPH_END)
        self._machine_of = {graph.name[vertices[machine.name]]: machine.id for machine in machines}
        self._vertex_of = {machine.id: vertices[machine.name] for machine in machines}
        self._name_of = {machine.id: graph.name[vertices[machine.name]] for machine in machines}
        for machine in machines:
            if not machine.capacity[PODS]:
                self._matcher.set_status(graph.paths[self._matcher.view.subsystem][vertices[machine.name]], is_up=False)
        #: By job key, the matcher's numbers of the running jobs.
        self._numbers: dict[str, int] = {}
        self._last_number = 0
        #: The numbers of the reservations of the current round.
        self._reserved: list[int] = []

    def update(self, view: View) -> None:
        """Release jobs that ended and all reservations. Extend the bookings of overdue jobs."""
        for number in self._reserved:
            self._matcher.cancel(number)
        self._reserved.clear()
        for job in view.ended:
            self._cancel(job)
        for running in view.running:
            if running.until > view.now:
                return
            self._cancel(running.job)
            self.restore(view, running)

    def _cancel(self, job: Job) -> None:
        number = self._numbers.pop(job.key, None)
        if number is not None:
            self._matcher.cancel(number)

    def restore(self, view: View, running: Running) -> None:
        """Book the resources of a running job on its machines."""
        until = max(running.until, view.now + 1)
        graph, ledger = self._matcher.graph, self._matcher.ledger
        pods: dict[int, int] = {}
        for machine_id in running.placement.machine_ids:
            pods[machine_id] = pods.get(machine_id, 0) + 1
        vertices: list[int] = []
        demand = vertex_demand(dict(running.job.requests))
        for machine_id, count in pods.items():
            leaves = list(leaves_of_node(graph, self._vertex_of[machine_id]))
            for type in dict.fromkeys(graph.type[leaf] for leaf in leaves):
                free = [v for v in leaves if graph.type[v] == type and ledger.free(v, view.now, until - view.now) > 0]
                vertices += free if self._takes_nodes else free[: count * demand.get(type, 0)]
        number = self._number(running.job)
        allocate_vertices(self._matcher, vertices, JobWindow(number, view.now, until - view.now, view.now))
        if number not in ledger.vertices_of_job:
            del self._numbers[running.job.key]

    def match(self, view: View, job: Job, *, can_reserve: bool) -> tuple[Placement | None, bool]:
        """Return the placement of a job, None unless it starts now, and whether it starts or is reserved."""
        jobspec = self._jobspec(view, job)
        if jobspec is None or not self._has_types(jobspec.resources):
            return None, False
        operation = MatchOperation.ALLOCATE_ORELSE_RESERVE if can_reserve else MatchOperation.ALLOCATE
        number = self._number(job)
        outcome = self._matcher.match(jobspec, operation, job=number, now=view.now)
        counts = self._counter.pop_counts()
        if outcome.start is None:
            del self._numbers[job.key]
            return None, False
        if outcome.start > view.now:
            del self._numbers[job.key]
            self._reserved.append(number)
            return None, True
        return self._placement(job, counts), True

    def _jobspec(self, view: View, job: Job) -> Jobspec | None:
        """Return the jobspec of a job, or None if no machine accepts it."""
        length = max(view.estimate(job), 1)
        nodes = self._accepting_nodes(view, job)
        if nodes is not None and not nodes.names:
            return None
        if self._takes_nodes:
            return nodes_jobspec(job.size, length, nodes=nodes)
        return pods_jobspec(job.size, vertex_demand(dict(job.requests)), length, nodes=nodes)

    def _accepting_nodes(self, view: View, job: Job) -> NodeNameConstraint | None:
        """Return the nodes that accept a job, or None for all."""
        room = view.free
        if isinstance(room, MachineRoom):
            if not job.requests:
                return None
            eligible = room.machines.eligible(job)
            names = [name for machine_id, name in self._name_of.items() if eligible >> machine_id & 1]
        else:
            accepts = room.nodes.accepts  # type: ignore[attr-defined]  # the other model
            accepted = None if accepts is None else accepts(job)
            if accepted is None or accepted.all():
                return None
            names = [name for machine_id, name in self._name_of.items() if accepted[machine_id]]
        return None if len(names) == len(self._name_of) else NodeNameConstraint(frozenset(names))

    def _has_types(self, requests: tuple[VertexRequest, ...]) -> bool:
        types = self._matcher.graph.type_order
        return all(request.type in types and self._has_types(request.inside) for request in requests)

    def _placement(self, job: Job, counts: dict[str, dict[str, int]]) -> Placement:
        """Return the machines of a match: a node appears once for each pod that it gets."""
        if self._takes_nodes:
            return MachinePlacement(mask_of(self._machine_of[name] for name in counts))
        # Imported lazily: numpy takes longer to load than a small run.
        from batkube.policies.node_room import NodePlacement

        cores = vertex_demand(dict(job.requests))["core"]
        machine_ids = sorted(
            self._machine_of[name] for name, by_type in counts.items() for _ in range(by_type["core"] // cores)
        )
        return NodePlacement(tuple(machine_ids[: job.size]), job.requests)

    def _number(self, job: Job) -> int:
        self._last_number += 1
        self._numbers[job.key] = self._last_number
        return self._last_number


def _cluster_graph(machines: Sequence[Machine], takes_nodes: bool) -> ClusterGraph:
    """Return the graph of the machines, without cores if jobs take whole nodes."""
    nodes = [_node_resources(machine, takes_nodes) for machine in machines]
    return ClusterGraph(nodes, has_racks=any(node.rack for node in nodes))


def _node_resources(machine: Machine, takes_nodes: bool) -> NodeResources:
    labels = machine.labels
    sockets = labels.get(SOCKETS, "")
    return NodeResources(
        machine.name,
        machine.id,
        {} if takes_nodes else vertex_counts(machine.capacity),
        zone=labels.get(ZONE, "") or machine.zone,
        rack=labels.get(RACK, ""),
        sockets=int(sockets) if sockets.isdecimal() and not takes_nodes else 0,
    )
