"""Fluxion as a policy: jobs are matched on a graph of resources, queued as its qmanager does.

The graph is made from the machines (zones, racks, nodes, sockets, cores, memory, GPUs), or read from a file. Jobs that
take whole machines ask for nodes; jobs that pack ask for a slot per pod, as KubeFlux does. Times are nanoseconds.
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

#: By queue policy: for how many of the jobs that do not fit now a time is reserved (Fluxion: qmanager/policies).
RESERVATION_DEPTHS = {"fcfs": 0, "easy": 1, "hybrid": 64, "conservative": 100_000}
#: How many jobs are looked at in one round, as in Fluxion.
QUEUE_DEPTH = 32


class Fluxion(Policy):
    """Fluxion: jobs are matched on a graph of racks, nodes, sockets, cores and GPUs, with reservations in the future.

    `match_policy` says which of the vertices that fit are taken (low, high, lonode, hinode, first, …). `queue_policy`
    is fcfs, easy, hybrid or conservative: no, one, 64 or nearly all of the jobs that do not fit now get a reservation
    (`reservation_depth`), and jobs behind them start if they are in nobody's way. In one round `queue_depth` jobs are
    looked at. `graph` is a file with the graph (`graph_format`: jgf, grug or rv1exec) in the place of one made from the
    machines; its nodes are those of the platform by name, or else in order.
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
        # Imported where they are needed only: matching takes longer to load than a small run of other policies takes.
        from batkube.graph.formats.reader import GRAPH_FORMATS
        from batkube.graph.traversal.match_policy import match_policy as known_match_policy

        known_match_policy(match_policy)
        if queue_policy not in RESERVATION_DEPTHS:
            raise ValueError(f"queue_policy is {queue_policy!r}; it is one of {', '.join(RESERVATION_DEPTHS)}")
        if queue_depth < 1:
            raise ValueError(f"queue_depth is {queue_depth}; it is at least 1")
        if reservation_depth is not None and (reservation_depth < 0 or queue_policy == "fcfs"):
            raise ValueError("reservation_depth is a number from 0 on, and fcfs reserves nothing")
        if graph_format not in GRAPH_FORMATS:
            raise ValueError(f"graph_format is {graph_format!r}; it is one of {', '.join(GRAPH_FORMATS)}")
        self._match_policy = match_policy
        self._is_fcfs = queue_policy == "fcfs"
        self._queue_depth = queue_depth
        self._reservation_depth = RESERVATION_DEPTHS[queue_policy] if reservation_depth is None else reservation_depth
        self._file = Path(graph) if graph else None
        self._format = graph_format
        self._machines: Sequence[Machine] = ()
        self._plan: GraphPlan | None = None

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Make the graph anew before the next decision."""
        super().begin(machines, rng)
        self._machines = machines
        self._plan = None

    def decide(self, view: View) -> Iterator[Decision]:
        """Let go of all reservations, go through the queue, start what fits now and reserve for some of the rest."""
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
        plan = GraphPlan(self._machines, self._match_policy, self._file, self._format, takes_nodes=takes_nodes)
        for held in view.running:
            plan.restore(view, held)
        return plan
