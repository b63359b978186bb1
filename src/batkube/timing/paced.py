"""The time rules of the 2020 prototype: listen to the scheduler for a while in real time, then jump.

    cycle start ─▶ tell what happened ─▶ listen; the clock runs with real time ─▶ leave ─▶ jump ─▶ next cycle start …

A cycle is left when a decision was seen or when `timeout` has passed, but never before `min_delay`. Then time jumps by
a step, or less if something happens in the simulation before. The step is a guess at how long the scheduler has nothing
to say: small after a decision, growing with every cycle that brings none, and without limit when no job waits (what
should it decide?).

The guess can be wrong. A scheduler that needs longer than the cycle finds, when it speaks, that time has jumped; its
decision is carried out late. Nothing here knows sockets or reads a clock: `pacing` does that.

Source: oar-team/batkube, pkg/broker/broker.go (processMessagesToSend, getNextWakeUp). What its published runs show and
its help texts leave open was taken from the data: a cycle lasts at least `min_delay` also when nothing is decided.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant

MILLISECOND = NANOSECONDS_PER_SECOND // 1000
#: Before the first decision ever, steps are so much smaller: a scheduler may be slow to come up.
_START_UP_FACTOR = 5

_NO_TIME = Duration(0)
_TIMEOUT = Duration(20 * MILLISECOND)
_BASE_STEP = Duration(100 * MILLISECOND)
_MAX_STEP = Duration(20 * NANOSECONDS_PER_SECOND)
_CRASH_TIMEOUT = Duration(5 * NANOSECONDS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class Pacing:
    """The parameters, with the prototype's defaults. Real time unless it says simulated."""

    #: How long a cycle without a decision lasts.
    timeout: Duration = _TIMEOUT
    #: The least that any cycle lasts.
    min_delay: Duration = _NO_TIME
    #: Simulated: the step after a decision, before it grows.
    base_step: Duration = _BASE_STEP
    #: Simulated: the largest step while jobs wait.
    max_step: Duration = _MAX_STEP
    #: By how much a step is longer than the one before.
    multiplier: float = 2.0
    #: With jobs waiting, none running and no decision for so long, the scheduler counts as crashed.
    crash_timeout: Duration = _CRASH_TIMEOUT
    #: Whether time may jump without limit while no job waits.
    fast_forward: bool = True
    #: Whether nodes refuse pods that they have no room for, as kubelets do. The prototype's nodes ran everything.
    admission: bool = False
    #: Whether watches of pods tell their past again and end, as the prototype's did (`pacing.replay`).
    replay: bool = False


PUBLISHED = Pacing()


class Pace:
    """Says when a cycle is over and when the next one starts."""

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._step = pacing.base_step
        self._has_decided = False
        #: The instants for which a cycle was asked; one that is overtaken by an event still comes (a heap).
        self._requested_cycles: list[Instant] = []

    def is_over(self, elapsed: Duration, decided: bool) -> bool:
        """Return whether a cycle is left after so much real time, with or without a decision in it."""
        return elapsed >= self._pacing.min_delay and (decided or elapsed > self._pacing.timeout)

    def record_decision(self) -> None:
        """Take note of a decision."""
        self._has_decided = True
        self._step = self._pacing.base_step

    def jump_limit(self, left: Instant, jobs_wait: bool) -> Instant | None:
        """Return until when time may jump from a cycle that was `left`; None is without limit."""
        step = self._next_step(jobs_wait)
        if step is not None:
            call = Instant(left + step)
            if not self._requested_cycles or call < self._requested_cycles[0]:
                heapq.heappush(self._requested_cycles, call)
        return self._requested_cycles[0] if self._requested_cycles else None

    def record_start(self, start: Instant) -> None:
        """Take note that a cycle starts: what was asked for until then has come."""
        while self._requested_cycles and self._requested_cycles[0] <= start:
            heapq.heappop(self._requested_cycles)

    def _next_step(self, jobs_wait: bool) -> Duration | None:
        """Return how far time may jump; None is without limit."""
        pacing = self._pacing
        if not self._has_decided:
            return Duration(pacing.base_step // _START_UP_FACTOR)
        if pacing.fast_forward and not jobs_wait:
            return None
        self._step = Duration(min(round(self._step * pacing.multiplier), pacing.max_step))
        return self._step


def round_up_to_millisecond(ns: int) -> int:
    """Return a time in whole milliseconds, rounded up: nothing is told before it has happened."""
    return -(-ns // MILLISECOND) * MILLISECOND
