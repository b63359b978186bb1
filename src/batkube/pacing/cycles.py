"""Runs an outside scheduler by the time rules of the 2020 prototype (`timing.paced`).

    keep what is due ─▶ listen: serve requests, take a decision ─▶ leave ─▶ jump …

The prototype sat between Batsim and the scheduler. Here the agenda is in Batsim's place: what is due while a cycle goes
on is told when the cycle is left, and happens when it was due.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, START, Duration, Instant, as_float_s, human
from batkube.kernel.stopwatch import Stopwatch
from batkube.pacing.programs import TICK_S, PacedProgram, PacedPrograms
from batkube.pacing.tally import Tally
from batkube.timing.loop import Loop
from batkube.timing.paced import MILLISECOND, Pace, Pacing, to_millisecond

#: What starts a cycle; that a container comes up or an event is cleared away does not.
_NEWS = (Rank.FINISH, Rank.SUBMIT)


class PacedTime:
    """One run by these rules."""

    def __init__(self, world: World, loop: Loop, pacing: Pacing, programs: PacedPrograms, tally: Tally) -> None:
        self._pacing = pacing
        self._pace = Pace(pacing)
        self._programs = programs
        self._loop = loop
        self._agenda = world.agenda
        self._tally = tally
        self._has_begun = False
        #: Since when the scheduler has had every reason to decide.
        self._silence = Stopwatch()

    @property
    def attachments(self) -> Sequence[PacedProgram]:
        """The programs, in the order of the scenario's schedulers."""
        return self._programs.programs

    def columns(self) -> dict[str, str | int]:
        """Return what schedule.csv tells of the cycles and the decisions in them."""
        return self._tally.columns()

    def stop(self) -> None:
        """End every program."""
        self._programs.stop()

    def go_on(self) -> Instant | None:
        """Listen for one cycle, and jump to the start of the next. Raises RunFailed."""
        if not self._has_begun:
            self._programs.come_up(self._tally.notes)
            self._has_begun, self._silence = True, Stopwatch()
            return START
        start = self._loop.now
        self._programs.move_to(start, jumped=True)
        decided = self._listen(start)
        self._check_alive(decided)
        return self._jump(decided)

    def _listen(self, start: Instant) -> bool:
        """Serve the scheduler until the cycle is over; return whether it decided anything."""
        tally, programs, watch = self._tally, self._programs, Stopwatch()
        tally.cycles += 1
        decided = False
        while True:
            before = tally.decisions
            programs.serve(self._wait_s(watch.real_s, decided))
            programs.take_binding()
            if tally.decisions > before:
                decided = True
                self._pace.decided()
                tally.decision_came(start, self._loop.now)
            elif not programs.are_at_work:
                tally.scheduler_is_idle()
            elapsed = Duration(int(watch.real_s * NANOSECONDS_PER_SECOND))
            if self._pace.is_over(elapsed, decided):
                self._loop.reach(_clock_after(start, elapsed))
                return decided
            programs.move_to(_clock_after(start, elapsed))

    def _wait_s(self, elapsed_s: float, decided: bool) -> float:
        """Return how long to wait for a request: a tick, or less when there is something to do before."""
        if self._programs.has_binding:
            return 0.0
        until = self._pacing.min_delay if decided else max(self._pacing.min_delay, self._pacing.timeout)
        return max(0.0, min(TICK_S, as_float_s(until) - elapsed_s))

    def _jump(self, decided: bool) -> Instant | None:
        """Return the start of the next cycle, with everything that is due until then done."""
        left = self._loop.now
        at_work = self._programs.are_at_work
        call = self._pace.next_call(left, self._tally.waiting > 0)
        news = self._keep_until(call)
        start = call if news is None else news
        if start is not None:
            start = Instant(max(left, start))
            self._pace.started(start)
            self._tally.time_jumped(start - left, at_work)
            self._tally.cycles_cut_short += at_work and not decided
        return start

    def _keep_until(self, until: Instant | None) -> Instant | None:
        """Keep what is due until `until`, or until there is news; return when that is told, or None."""
        news: Instant | None = None
        while (due := self._agenda.due) is not None:
            limit = until if news is None else news
            if limit is not None and due > limit:
                break
            if self._loop.keep_next() in _NEWS and news is None:
                news = Instant(to_millisecond(max(due, self._loop.now)))
        return news

    def _check_alive(self, decided: bool) -> None:
        """See that the programs are there, and that they decide when there is nothing else to wait for."""
        self._programs.check()
        if decided or self._tally.running or not self._tally.waiting:
            self._silence = Stopwatch()
        elif self._silence.real_s > as_float_s(self._pacing.crash_timeout):
            raise self._programs.failure(
                f"made no decision for {human(self._pacing.crash_timeout)} of real time (crash-timeout), "
                f"while {self._tally.waiting} pods waited and none ran"
            )


def _clock_after(start: Instant, elapsed: Duration) -> Instant:
    """Return what the clock shows after so much of a cycle: it goes in milliseconds."""
    return Instant(start + round(elapsed / MILLISECOND) * MILLISECOND)
