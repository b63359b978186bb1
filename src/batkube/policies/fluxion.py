"""Fluxion as a policy: jobs are matched on a graph of resources and queued as in its qmanager.

The graph is built from the machines (zones, racks, nodes, sockets, cores, memory, GPUs) or read
from a file. Jobs that take whole machines request nodes. Jobs that share machines request a slot
per pod, as in KubeFlux. The graph's time is in nanoseconds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.platforms.model import Machine
from batkube.policies.interface import Decision, Policy, Start, View
from batkube.policies.machine_room import MachineRoom

if TYPE_CHECKING:
    from batkube.policies.graph_plan import GraphPlan

#: By queue policy, the number of jobs that get a reservation if they do not fit now (flux-sched:
#: qmanager/policies and qmanager/config/queue_system_defaults.hpp).
RESERVATION_DEPTHS = {"fcfs": 0, "easy": 1, "hybrid": 64, "conservative": 100_000}
#: The number of jobs considered in one round, as in Fluxion.
QUEUE_DEPTH = 32


class Fluxion(Policy):
    """Fluxion: jobs are matched on a graph of racks, nodes, sockets, cores and GPUs, with reservations in the future.

    `match_policy` selects among the vertices that fit (low, high, lonode, hinode, first, …).
    `queue_policy` is fcfs, easy, hybrid or conservative: none, one, 64 or nearly all of the jobs
    that do not fit now get a reservation (`reservation_depth`), and later jobs start if they
    conflict with none. In one round `queue_depth` jobs are considered. `graph` is a file to use
    instead of the graph of the machines (`graph_format`: jgf, grug or rv1exec); its nodes are
    matched with the platform's by name, or else in order.
    """

    def __init__(
        self,
        match_policy: str = "lonode",
        queue_policy: str = "easy",
        queue_depth: int = QUEUE_DEPTH,
        reservation_depth: int | None = None,
        graph: str = "",
        graph_format: str = "jgf",
    ) -> None:
        # Imported lazily: loading the matcher takes longer than a small run with another policy.
        from batkube.graph.formats.reader import GRAPH_FORMATS
        from batkube.graph.traversal.match_policy import match_policy as check_match_policy

        check_match_policy(match_policy)
        if queue_policy not in RESERVATION_DEPTHS:
            raise ValueError(f"queue_policy is {queue_policy!r}; use one of {', '.join(RESERVATION_DEPTHS)}")
        if queue_depth < 1:
            raise ValueError(f"queue_depth is {queue_depth}; use at least 1")
        if reservation_depth is not None and queue_policy == "fcfs":
            raise ValueError("reservation_depth is set, but queue_policy fcfs has no reservations")
        if reservation_depth is not None and reservation_depth < 0:
            raise ValueError(f"reservation_depth is {reservation_depth}; use at least 0")
        if graph_format not in GRAPH_FORMATS:
            raise ValueError(f"graph_format is {graph_format!r}; use one of {', '.join(GRAPH_FORMATS)}")
        self._match_policy = match_policy
        self._is_fcfs = queue_policy == "fcfs"
        self._queue_depth = queue_depth
        self._reservation_depth = RESERVATION_DEPTHS[queue_policy] if reservation_depth is None else reservation_depth
        self._graph_file = Path(graph) if graph else None
        self._graph_format = graph_format
        self._machines: Sequence[Machine] = ()
        self._plan: GraphPlan | None = None

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Discard the graph; the next decision rebuilds it."""
        super().begin(machines, rng)
        self._machines = machines
        self._plan = None

    def decide(self, view: View) -> Iterator[Decision]:
        """Release all reservations, start the jobs that fit now, and reserve times for some others."""
        plan = self._plan
        if plan is None:
            plan = self._plan = self._new_plan(view)
        else:
            plan.update(view)
        reserved = 0
        for job in view.queue[: self._queue_depth]:
            can_reserve = reserved < self._reservation_depth
            placement, has_slot = plan.match(view, job, can_reserve=can_reserve)
            if placement is not None:
                yield Start(job, placement)
            elif self._is_fcfs:
                return
            reserved += has_slot and placement is None

    def _new_plan(self, view: View) -> GraphPlan:
        from batkube.policies.graph_plan import GraphPlan

        takes_nodes = isinstance(view.free, MachineRoom)
        plan = GraphPlan(
            self._machines, self._match_policy, self._graph_file, self._graph_format, takes_nodes=takes_nodes
        )
        for running in view.running:
            plan.restore(view, running)
        return plan
