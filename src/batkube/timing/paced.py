"""The time rules of the 2020 prototype: wait for the scheduler for a while in real time, then jump.

    cycle start ─▶ send events ─▶ wait for decisions; the clock runs with real time ─▶ cycle end ─▶ jump ─▶ …

A cycle ends after a decision or after `timeout`, but never before `min_delay`. Then time jumps by a step, or less if a
simulated event is due earlier. The step is a guess of how long the scheduler has nothing to decide. It is small after a
decision, grows with every cycle without one, and is unlimited while no job is pending.

The guess can be wrong: if a scheduler needs longer than the cycle, time has jumped before its decision arrives, and the
decision is carried out late. This module only computes; it neither uses sockets nor reads a clock.

Source: oar-team/batkube, pkg/broker/broker.go (processMessagesToSend, getNextWakeUp). Its help texts leave one point
open, which was derived from its published data: a cycle without a decision also lasts at least `min_delay`.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant

MILLISECOND = NANOSECONDS_PER_SECOND // 1000
#: Before the first decision, steps are smaller by this factor, since a scheduler may be slow to start.
_START_UP_FACTOR = 5

_NO_TIME = Duration(0)
_TIMEOUT = Duration(20 * MILLISECOND)
_BASE_STEP = Duration(100 * MILLISECOND)
_MAX_STEP = Duration(20 * NANOSECONDS_PER_SECOND)
_CRASH_TIMEOUT = Duration(5 * NANOSECONDS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class Pacing:
    """The parameters, with the prototype's defaults. Durations are in real time unless marked as simulated."""

    #: The length of a cycle without a decision.
    timeout: Duration = _TIMEOUT
    #: The minimum length of a cycle.
    min_delay: Duration = _NO_TIME
    #: Simulated: the step after a decision, before it grows.
    base_step: Duration = _BASE_STEP
    #: Simulated: the largest step while jobs wait.
    max_step: Duration = _MAX_STEP
    #: The factor by which a step is longer than the previous one.
    multiplier: float = 2.0
    #: If jobs are pending, none runs and no decision comes for this long, the scheduler counts as crashed.
    crash_timeout: Duration = _CRASH_TIMEOUT
    #: Whether time may jump without limit while no job is pending.
    fast_forward: bool = True
    #: Whether nodes reject pods that do not fit, as kubelets do. The prototype's nodes ran every pod.
    admission: bool = False
    #: Whether pod watches repeat their past events and end, as the prototype's did.
    replay: bool = False


PUBLISHED = Pacing()


class Pace:
    """Determines when a cycle ends and when the next one starts."""

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._step = pacing.base_step
        self._has_decided = False
        #: The requested cycle starts (a heap). One that an event precedes is still due.
        self._requested_cycles: list[Instant] = []

    def is_over(self, elapsed: Duration, decided: bool) -> bool:
        """Return whether a cycle ends after `elapsed` real time, with or without a decision in it."""
        return elapsed >= self._pacing.min_delay and (decided or elapsed > self._pacing.timeout)

    def record_decision(self) -> None:
        """Reset the step after a decision."""
        self._has_decided = True
        self._step = self._pacing.base_step

    def jump_limit(self, cycle_end: Instant, jobs_wait: bool) -> Instant | None:
        """Return until when time may jump after a cycle; None for no limit."""
        step = self._next_step(jobs_wait)
        if step is not None:
            requested = Instant(cycle_end + step)
            if not self._requested_cycles or requested < self._requested_cycles[0]:
                heapq.heappush(self._requested_cycles, requested)
        return self._requested_cycles[0] if self._requested_cycles else None

    def record_start(self, start: Instant) -> None:
        """Remove the requested cycle starts up to `start`."""
        while self._requested_cycles and self._requested_cycles[0] <= start:
            heapq.heappop(self._requested_cycles)

    def _next_step(self, jobs_wait: bool) -> Duration | None:
        """Return how far time may jump; None for no limit."""
        pacing = self._pacing
        if not self._has_decided:
            return Duration(pacing.base_step // _START_UP_FACTOR)
        if pacing.fast_forward and not jobs_wait:
            return None
        self._step = Duration(min(round(self._step * pacing.multiplier), pacing.max_step))
        return self._step


def round_up_to_millisecond(ns: int) -> int:
    """Round a time up to whole milliseconds, so that no event is reported before it has happened."""
    return -(-ns // MILLISECOND) * MILLISECOND
