"""Statistics of paced time: pending and running pods, decisions, and how late decisions came.

A decision is late if time jumped while the scheduler worked on it. The work on a decision starts when the scheduler was
last idle or made another decision, but not before the pod existed and its node was free.
"""

from __future__ import annotations

from batkube.cluster.mapping import NAMESPACE, POD
from batkube.cluster.pods.accessors import node_of_pod
from batkube.cluster.store import ADDED, DELETED, Batch, Key
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations, OvercommittedAllocations
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import START, Duration, Instant, format_seconds

_LATE = FidelityNote("time", "decisions came late: time had jumped while the scheduler was working on them")


class DecisionStats:
    """Subscribes to pods and counts decisions and their lateness."""

    def __init__(self, world: World, nodes: NodeAllocations) -> None:
        self._journal = world.journal
        self.notes = world.notes
        self._nodes = nodes
        #: Pods with a node.
        self.running_pods = 0
        #: Pods bound so far.
        self.decisions = 0
        #: The last bound pod, and the earliest instant at which it could have been bound: it existed, and its node was
        #: free.
        self._last_bound, self._possible_since = Key(""), START
        #: Creation time of each pending pod, and when each node was last freed by a pod.
        self._created: dict[Key, Instant] = {}
        self._freed_at: dict[str, Instant] = {}
        self.cycles = 0
        #: Cycles that ended without a decision while the scheduler was busy.
        self.cycles_cut_short = 0
        #: By how much time has jumped since the scheduler was last idle or made a decision.
        self._jumped_by = Duration(0)
        self._late = 0
        self._late_sum = 0
        self._late_max = 0
        world.store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            node = node_of_pod(change.object)
            if batch.type is ADDED and node:
                self.running_pods += 1
            elif batch.type is ADDED:
                self._created[change.key] = now
            elif batch.type is DELETED:
                self._created.pop(change.key, None)
                self.running_pods -= bool(node)
                self._freed_at[node] = now
            elif node and change.key in self._created:
                self.running_pods += 1
                self.decisions += 1
                self._last_bound = change.key
                self._possible_since = max(self._created.pop(change.key), self._freed_at.get(node, START))

    @property
    def waiting_pods(self) -> int:
        """The number of pods without a node."""
        return len(self._created)

    def on_scheduler_idle(self) -> None:
        """Record that the scheduler is idle: its next decision starts now."""
        self._jumped_by = Duration(0)

    def on_time_jump(self, length: int, was_busy: bool) -> None:
        """Record a jump of time, and whether the scheduler was busy during it."""
        self._jumped_by = Duration(self._jumped_by + length) if was_busy else Duration(0)

    def on_decision(self, start: Instant, now: Instant) -> None:
        """Record a decision made at `now`, in the cycle that began at `start`; work on the next decision starts now."""
        lateness, self._jumped_by = min(self._jumped_by, start - self._possible_since), Duration(0)
        if lateness <= 0:
            return
        self._late += 1
        self._late_sum += lateness
        self._late_max = max(self._late_max, lateness)
        pod = self._last_bound.removeprefix(f"{NAMESPACE}/")
        self._journal.append(now, "late", pod=pod, by=lateness)
        self.notes.add(_LATE, example=f"pod {pod} by {format_seconds(lateness)} s")

    def columns(self) -> dict[str, str | int]:
        """Return the statistics as columns of schedule.csv."""
        return {
            "cycles": self.cycles,
            "cycles_cut_short": self.cycles_cut_short,
            "decisions": self.decisions,
            "late_decisions": self._late,
            "mean_lateness": format_seconds(round(self._late_sum / max(1, self.decisions))),
            "max_lateness": format_seconds(self._late_max),
            "over_allocations": self._nodes.over_allocations
            if isinstance(self._nodes, OvercommittedAllocations)
            else 0,
        }
