"""Runs an outside scheduler by the time rules of the 2020 prototype (`timing.paced`).

    keep what is due ─▶ listen: serve requests, take a decision ─▶ leave ─▶ jump …

The prototype sat between Batsim and the scheduler. Here the agenda is in Batsim's place: what is due while a cycle goes
on is told when the cycle is left, and happens when it was due.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, START, Duration, Instant, as_float_s, human_duration
from batkube.kernel.stopwatch import Stopwatch
from batkube.pacing.decision_stats import DecisionStats
from batkube.pacing.paced_programs import TICK_S, PacedProgram, PacedPrograms
from batkube.timing.loop import Loop
from batkube.timing.paced import MILLISECOND, Pace, Pacing, round_up_to_millisecond

#: What starts a cycle; that a container comes up or an event is cleared away does not.
_CYCLE_TRIGGERS = (Rank.FINISH, Rank.SUBMIT)


class PacedTimeDriver:
    """One run by these rules."""

    def __init__(self, world: World, loop: Loop, pacing: Pacing, programs: PacedPrograms, tally: DecisionStats) -> None:
        self._pacing = pacing
        self._pace = Pace(pacing)
        self._programs = programs
        self._loop = loop
        self._agenda = world.agenda
        self._stats = tally
        self._has_begun = False
        #: Since when the scheduler has had every reason to decide.
        self._since_progress = Stopwatch()

    @property
    def attachments(self) -> Sequence[PacedProgram]:
        """The programs, in the order of the scenario's schedulers."""
        return self._programs.programs

    def columns(self) -> dict[str, str | int]:
        """Return what schedule.csv tells of the cycles and the decisions in them."""
        return self._stats.columns()

    def stop(self) -> None:
        """End every program."""
        self._programs.stop()

    def advance(self) -> Instant | None:
        """Listen for one cycle, and jump to the start of the next. Raises RunFailed."""
        if not self._has_begun:
            self._programs.warm_up(self._stats.notes)
            self._has_begun, self._since_progress = True, Stopwatch()
            return START
        start = self._loop.now
        self._programs.set_time(start, jumped=True)
        decided = self._serve_cycle(start)
        self._check_alive(decided)
        return self._jump(decided)

    def _serve_cycle(self, start: Instant) -> bool:
        """Serve the scheduler until the cycle is over; return whether it decided anything."""
        tally, programs, watch = self._stats, self._programs, Stopwatch()
        tally.cycles += 1
        decided = False
        while True:
            before = tally.decisions
            programs.serve(self._wait_s(watch.real_s, decided))
            programs.accept_binding()
            if tally.decisions > before:
                decided = True
                self._pace.record_decision()
                tally.on_decision(start, self._loop.now)
            elif not programs.is_any_busy:
                tally.on_scheduler_idle()
            elapsed = Duration(int(watch.real_s * NANOSECONDS_PER_SECOND))
            if self._pace.is_over(elapsed, decided):
                self._loop.advance_to(_clock_after(start, elapsed))
                return decided
            programs.set_time(_clock_after(start, elapsed))

    def _wait_s(self, elapsed_s: float, decided: bool) -> float:
        """Return how long to wait for a request: a tick, or less when there is something to do before."""
        if self._programs.has_binding:
            return 0.0
        until = self._pacing.min_delay if decided else max(self._pacing.min_delay, self._pacing.timeout)
        return max(0.0, min(TICK_S, as_float_s(until) - elapsed_s))

    def _jump(self, decided: bool) -> Instant | None:
        """Return the start of the next cycle, with everything that is due until then done."""
        left = self._loop.now
        at_work = self._programs.is_any_busy
        call = self._pace.jump_limit(left, self._stats.waiting_pods > 0)
        news = self._run_until(call)
        start = call if news is None else news
        if start is not None:
            start = Instant(max(left, start))
            self._pace.record_start(start)
            self._stats.on_time_jump(start - left, at_work)
            self._stats.cycles_cut_short += at_work and not decided
        return start

    def _run_until(self, until: Instant | None) -> Instant | None:
        """Keep what is due until `until`, or until there is news; return when that is told, or None."""
        news: Instant | None = None
        while (due := self._agenda.due) is not None:
            limit = until if news is None else news
            if limit is not None and due > limit:
                break
            if self._loop.run_next() in _CYCLE_TRIGGERS and news is None:
                news = Instant(round_up_to_millisecond(max(due, self._loop.now)))
        return news

    def _check_alive(self, decided: bool) -> None:
        """See that the programs are there, and that they decide when there is nothing else to wait for."""
        self._programs.check_running()
        if decided or self._stats.running_pods or not self._stats.waiting_pods:
            self._since_progress = Stopwatch()
        elif self._since_progress.real_s > as_float_s(self._pacing.crash_timeout):
            raise self._programs.failure(
                f"made no decision for {human_duration(self._pacing.crash_timeout)} of real time (crash-timeout), "
                f"while {self._stats.waiting_pods} pods waited and none ran"
            )


def _clock_after(start: Instant, elapsed: Duration) -> Instant:
    """Return what the clock shows after so much of a cycle: it goes in milliseconds."""
    return Instant(start + round(elapsed / MILLISECOND) * MILLISECOND)
