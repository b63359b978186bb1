"""Divides the wait of a job or pod into periods, each with its cause and the jobs that caused it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import msgspec

from batkube.kernel.instants import Instant
from batkube.kernel.quantities import MACHINE
from batkube.outputs.explain.free_slots import FreeSlots, SlotReplay, slots_on
from batkube.outputs.explain.model import Cause, Holder, WaitPeriod
from batkube.outputs.explain.scheduling_rules import SchedulingRule
from batkube.outputs.explain.units import NEVER, Unit, holders_by_name, node_names
from batkube.outputs.playback.model import RecordedPod
from batkube.outputs.playback.playback import Playback


class _Step(msgspec.Struct, frozen=True):
    """The cause of the wait from an instant on."""

    at: Instant
    cause: Cause
    needed: int
    slots: FreeSlots
    first: str


class WaitAnalysis:
    """The wait of one unit."""

    def __init__(self, playback: Playback, units: Sequence[Unit], unit: Unit, rule: SchedulingRule) -> None:
        self._playback = playback
        self._unit = unit
        self._rule = rule
        self._end = min(unit.wait_end, playback.end)
        self._ahead = _ahead(units, unit, rule)
        is_waiting = unit.queued < self._end and unit.pods
        slots = SlotReplay(playback, unit.requests).between(unit.queued, self._end) if is_waiting else ()
        self._slots = list(slots)
        self._usable = {node.name for node in playback.nodes if slots_on(node, unit.requests, {})}
        self._own = {pod.number for pod in unit.pods}
        #: Pods of others that held resources during the wait.
        self._others = [pod for pod in playback.pods if self._holds_during(pod, unit.queued, self._end)]

    @functools.cached_property
    def periods(self) -> tuple[WaitPeriod, ...]:
        """The periods of the wait, in order; none if it did not wait."""
        groups: list[list[_Step]] = []
        for step in self._steps():
            if groups and groups[-1][-1].cause is step.cause:
                groups[-1].append(step)
            else:
                groups.append([step])
        ends = [*(group[0].at for group in groups[1:]), self._end][: len(groups)]
        return tuple(self._period(group, end) for group, end in zip(groups, ends, strict=True))

    def released_by(self) -> tuple[str, ...]:
        """Return the jobs and pods whose end freed the resources for the unit.

        They ended when the unit was placed, or earlier, when it already fitted and the scheduler did not place it yet.
        """
        if self._unit.bound is None or not self.periods:
            return ()
        last = self.periods[-1]
        instant = last.begin if last.cause is Cause.SCHEDULER else self._end
        ended = [pod for pod in self._others if pod.ended == instant]
        if MACHINE not in self._unit.requests:
            # Free resources on other nodes do not matter.
            own_nodes = node_names(self._unit.pods)
            ended = [pod for pod in ended if pod.node in own_nodes] or ended
        return tuple(holders_by_name(self._playback, ended))

    def _steps(self) -> Iterator[_Step]:
        """Yield a step for each instant at which the free slots, or the first job of the queue, changed."""
        order_changes = {at for other in self._ahead for at in (other.queued, other.wait_end)}
        changes = {at for at in order_changes if self._unit.queued < at < self._end}
        instants = sorted({slots.at for slots in self._slots} | changes)
        slots = list(self._slots)
        for at in instants:
            while len(slots) > 1 and slots[1].at <= at:
                del slots[0]
            yield self._step(at, slots[0])

    def _step(self, at: Instant, slots: FreeSlots) -> _Step:
        needed = self._needed(at)
        waiting = (other for other in self._ahead if other.queued <= at < other.wait_end)
        first = min(waiting, key=lambda unit: rank_of(unit, self._rule), default=None)
        if first is not None and self._rule.strict_order:
            cause = Cause.ORDER
        elif slots.fitting < needed:
            cause = Cause.RESOURCES
        else:
            cause = Cause.RESERVATION if self._rule.reserves_for else Cause.SCHEDULER
        is_cause = first is not None and cause in (Cause.ORDER, Cause.RESERVATION)
        return _Step(at, cause, needed, slots, first.name if first is not None and is_cause else "")

    def _needed(self, at: Instant) -> int:
        """Return how many of the unit's pods had no node at an instant."""
        return self._unit.size - sum(pod.bound is not None and pod.bound <= at for pod in self._unit.pods)

    def _period(self, steps: Sequence[_Step], end: Instant) -> WaitPeriod:
        last = steps[-1]
        first_jobs = [step.first for step in steps if step.first]
        holders, earlier = self._holders(steps[0].at, end) if last.cause is Cause.RESOURCES else ((), 0)
        return WaitPeriod(
            steps[0].at,
            None if self._unit.wait_end is NEVER and end == self._end else end,
            last.cause,
            max(step.needed for step in steps),
            max(step.slots.fitting for step in steps),
            max(step.slots.capacity for step in steps),
            holders,
            earlier,
            first_jobs[-1] if first_jobs else "",
            len(set(first_jobs)),
            self._rule.strict_order if first_jobs else "",
        )

    def _holders(self, begin: Instant, end: Instant) -> tuple[tuple[Holder, ...], int]:
        """Return the holders of resources just before `end`, and how many others held some earlier in the period."""
        during = [pod for pod in self._others if self._holds_during(pod, begin, end)]
        at_end = [pod for pod in during if pod.ended is None or pod.ended >= end]
        holders = [_holder(name, pods) for name, pods in holders_by_name(self._playback, at_end).items()]
        holders.sort(key=lambda holder: (-holder.pods, holder.since))
        earlier = holders_by_name(self._playback, during).keys() - {holder.name for holder in holders}
        return tuple(holders), len(earlier)

    def _holds_during(self, pod: RecordedPod, begin: Instant, end: Instant) -> bool:
        """Return whether another pod held resources on a usable node at some time in [begin, end)."""
        if pod.bound is None or pod.bound >= end or pod.node not in self._usable or pod.number in self._own:
            return False
        return pod.ended is None or (pod.ended > begin and pod.ended > pod.bound)


def _holder(name: str, pods: Sequence[RecordedPod]) -> Holder:
    since = min(pod.bound for pod in pods if pod.bound is not None)
    ends = [pod.ended for pod in pods]
    until = None if None in ends else max(end for end in ends if end is not None)
    return Holder(name, len(pods), since, until, node_names(pods))


def rank_of(unit: Unit, rule: SchedulingRule) -> tuple[int, ...]:
    """Return the sort key of a unit in the order of a policy."""
    if rule.strict_order == "priority":
        return -unit.priority, unit.submitted, unit.queued, unit.number
    estimate = unit.estimate or 0
    return estimate if rule.strict_order == "estimate" else 0, unit.queued, unit.number


def _ahead(units: Sequence[Unit], unit: Unit, rule: SchedulingRule) -> list[Unit]:
    """Return the units that preceded `unit` in the queue during its wait, if the scheduler's rule has an order."""
    if not rule.strict_order and rule.reserves_for != "first":
        return []
    rank = rank_of(unit, rule)
    return [
        other
        for other in units
        if rank_of(other, rule) < rank and other.wait_end > unit.queued and other.queued < unit.wait_end
    ]
