"""Time driver with the rules of the 2020 prototype (`timing.paced`).

    execute due appointments ─▶ serve requests and handle a decision ─▶ end the cycle ─▶ jump …

The prototype connected the scheduler to Batsim. Here the agenda replaces Batsim: an event that is due during a cycle
happens at its own instant, but is reported when the cycle ends.
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

#: Appointments of these ranks start a cycle; container starts and event clean-up do not.
_CYCLE_TRIGGERS = (Rank.FINISH, Rank.SUBMIT)


class PacedTimeDriver:
    """Drives a run by the rules of the prototype."""

    def __init__(self, world: World, loop: Loop, pacing: Pacing, programs: PacedPrograms, stats: DecisionStats) -> None:
        self._pacing = pacing
        self._pace = Pace(pacing)
        self._programs = programs
        self._loop = loop
        self._agenda = world.agenda
        self._stats = stats
        self._has_begun = False
        #: Since the scheduler could last be expected to decide: pods are pending and none runs.
        self._since_progress = Stopwatch()

    @property
    def attachments(self) -> Sequence[PacedProgram]:
        """The programs, in the order of the scenario's schedulers."""
        return self._programs.programs

    def columns(self) -> dict[str, str | int]:
        """Return the statistics of cycles and decisions for schedule.csv."""
        return self._stats.columns()

    def stop(self) -> None:
        """Stop every program."""
        self._programs.stop()

    def advance(self) -> Instant | None:
        """Serve one cycle, and jump to the start of the next. Raises RunFailed."""
        if not self._has_begun:
            self._programs.warm_up(self._stats.notes)
            self._has_begun, self._since_progress = True, Stopwatch()
            return START
        start = self._loop.now
        self._programs.set_time(start, jumped=True)
        has_decided = self._serve_cycle(start)
        self._check_alive(has_decided)
        return self._jump(has_decided)

    def _serve_cycle(self, start: Instant) -> bool:
        """Serve the scheduler until the cycle ends; return whether it decided anything."""
        stats, programs, stopwatch = self._stats, self._programs, Stopwatch()
        stats.cycles += 1
        has_decided = False
        while True:
            decisions_before = stats.decisions
            programs.serve(self._wait_s(stopwatch.real_s, has_decided))
            programs.accept_binding()
            if stats.decisions > decisions_before:
                has_decided = True
                self._pace.record_decision()
                stats.on_decision(start, self._loop.now)
            elif not programs.is_any_busy:
                stats.on_scheduler_idle()
            elapsed = Duration(int(stopwatch.real_s * NANOSECONDS_PER_SECOND))
            if self._pace.is_over(elapsed, has_decided):
                self._loop.advance_to(_clock_after(start, elapsed))
                return has_decided
            programs.set_time(_clock_after(start, elapsed))

    def _wait_s(self, elapsed_s: float, has_decided: bool) -> float:
        """Return how long to wait for a request: a tick, or less if a binding or the end of the cycle comes first."""
        if self._programs.has_binding:
            return 0.0
        until = self._pacing.min_delay if has_decided else max(self._pacing.min_delay, self._pacing.timeout)
        return max(0.0, min(TICK_S, as_float_s(until) - elapsed_s))

    def _jump(self, has_decided: bool) -> Instant | None:
        """Execute appointments up to the start of the next cycle, and return that instant."""
        cycle_end = self._loop.now
        is_busy = self._programs.is_any_busy
        limit = self._pace.jump_limit(cycle_end, self._stats.waiting_pods > 0)
        trigger = self._run_until(limit)
        start = limit if trigger is None else trigger
        if start is not None:
            start = Instant(max(cycle_end, start))
            self._pace.record_start(start)
            self._stats.on_time_jump(start - cycle_end, is_busy)
            self._stats.cycles_cut_short += is_busy and not has_decided
        return start

    def _run_until(self, until: Instant | None) -> Instant | None:
        """Execute appointments up to `until` or the first cycle trigger; return when that trigger is reported."""
        while (due := self._agenda.due) is not None and (until is None or due <= until):
            trigger = self._loop.run_until(due, lambda appointment: appointment.rank in _CYCLE_TRIGGERS)
            if trigger is not None:
                report_time = Instant(round_up_to_millisecond(max(trigger.at, self._loop.now)))
                self._loop.run_until(report_time)
                return report_time
        return None

    def _check_alive(self, has_decided: bool) -> None:
        """Check that the programs run, and that a scheduler with pending pods and an idle cluster makes decisions."""
        self._programs.check_running()
        if has_decided or self._stats.running_pods or not self._stats.waiting_pods:
            self._since_progress = Stopwatch()
        elif self._since_progress.real_s > as_float_s(self._pacing.crash_timeout):
            raise self._programs.failure(
                f"made no decision for {human_duration(self._pacing.crash_timeout)} of real time (crash-timeout), "
                f"while {self._stats.waiting_pods} pods waited and none ran"
            )


def _clock_after(start: Instant, elapsed: Duration) -> Instant:
    """Return the virtual time after `elapsed` of a cycle, in whole milliseconds as in the prototype."""
    return Instant(start + round(elapsed / MILLISECOND) * MILLISECOND)
