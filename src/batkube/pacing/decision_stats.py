"""What is counted while time is paced: pods that wait and that run, decisions, and how late they came.

A decision is late when time jumped while the scheduler was at work on it. It began that work when it was last idle or
decided something else, and not before the pod had come and its node was free.
"""

from __future__ import annotations

from batkube.cluster.mapping import NAMESPACE, POD
from batkube.cluster.pods.accessors import node_of_pod
from batkube.cluster.store import ADDED, DELETED, Batch, Key
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations, OvercommittedAllocations
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import START, Duration, Instant, format_seconds

_LATE = FidelityNote("time", "decisions came late: time had jumped while the scheduler was at work on them")


class DecisionStats:
    """Listens to pods, and keeps the run's numbers."""

    def __init__(self, world: World, nodes: NodeAllocations) -> None:
        self._journal = world.journal
        self.notes = world.notes
        self._nodes = nodes
        #: Pods with a node.
        self.running_pods = 0
        #: Pods that were bound, ever.
        self.decisions = 0
        #: The last pod that was bound, and since when that was possible: the pod was there, and its node was free.
        self._last_bound, self._possible_since = Key(""), START
        #: When each pod that waits was created, and when each node was last left by a pod.
        self._created: dict[Key, Instant] = {}
        self._freed_at: dict[str, Instant] = {}
        self.cycles = 0
        #: Cycles that were left without a decision while the scheduler was at work.
        self.cycles_cut_short = 0
        #: By how much time has jumped since the scheduler began what it is at: since it was idle, or decided.
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
        """How many pods have no node."""
        return len(self._created)

    def on_scheduler_idle(self) -> None:
        """Take note that the scheduler is done with everything: what it decides next, it begins next."""
        self._jumped_by = Duration(0)

    def on_time_jump(self, by: int, at_work: bool) -> None:
        """Take note of a jump, and whether the scheduler was at work meanwhile."""
        self._jumped_by = Duration(self._jumped_by + by) if at_work else Duration(0)

    def on_decision(self, start: Instant, now: Instant) -> None:
        """Take note that a decision has come `now`, in the cycle from `start` on; the next one is begun now."""
        late, self._jumped_by = min(self._jumped_by, start - self._possible_since), Duration(0)
        if late <= 0:
            return
        self._late += 1
        self._late_sum += late
        self._late_max = max(self._late_max, late)
        pod = self._last_bound.removeprefix(f"{NAMESPACE}/")
        self._journal.append(now, "late", pod=pod, by=late)
        self.notes.add(_LATE, example=f"pod {pod} by {format_seconds(late)} s")

    def columns(self) -> dict[str, str | int]:
        """Return the numbers as columns of schedule.csv."""
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
