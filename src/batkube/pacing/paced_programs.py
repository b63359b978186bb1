"""The programs of a run whose time follows the real clock: their clocks, their servers, and whether they are busy.

A program built with the overlay reads its clock from a page of shared memory, which is written about every millisecond.
Each write also wakes the program so that its timers fire. Any other program reads the machine's own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from batkube.kernel.errors import RunFailed
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, START, Instant
from batkube.kernel.stopwatch import Stopwatch
from batkube.pacing.server import PacedServer
from batkube.programs.observation.failed_attempts import AttemptLog
from batkube.programs.observation.observer import ProgramObserver
from batkube.timing.live import RealTime
from batkube.timing.loop import Loop
from batkube.timing.processes.attached_process import AttachedProcess

#: How often the clock is written, in real time.
TICK_S = 0.001
#: How long programs may take to connect for the first time.
_CONNECT_TIMEOUT_S = 20.0
#: Warm-up ends when no program has sent a request for this long,
_QUIET_S = 0.25
#: or after this long: some programs never stop sending requests.
_QUIET_TIMEOUT_S = 3.0
_JUST_BEFORE_START = Instant(START - NANOSECONDS_PER_SECOND // 1000)


_OWN_CLOCK = FidelityNote(
    "time", "a program runs on the machine's clock: its timers and back-offs take real time, not simulated time"
)


class PacedProgram:
    """A program and the API server that serves it."""

    def __init__(self, process: AttachedProcess, server: PacedServer, epoch_ns: int) -> None:
        self.process = process
        self.server = server
        self._page = process.page
        #: The Unix time of the run's Instant 0.
        self._epoch_ns = epoch_ns
        self._probe = 0
        self._traffic = 0

    @property
    def is_attached(self) -> bool:
        """Whether the program reads the run's clock; otherwise it reads the machine's."""
        return self._page.pid != 0

    @property
    def traffic(self) -> int:
        """Bytes received and sent so far."""
        return self.server.received + self.server.sent

    def set_time(self, now: Instant, jumped: bool) -> None:
        """Set the program's clock, and wake it so that its timers fire.

        Only a jump or traffic marks the program as busy, because both may cause work; a millisecond that passes hardly
        does.
        """
        self._page.now = now + self._epoch_ns
        if not self.is_attached:
            return
        probe = self._page.probe()
        if jumped or self._traffic != self.traffic:
            self._probe, self._traffic = probe, self.traffic

    @property
    def is_busy(self) -> bool:
        """Whether the program may still be busy with its last input.

        A program on the machine's clock is only known to be busy while a binding of it is pending.
        """
        if self.server.waiting_bindings:
            return True
        return self.is_attached and not (self._page.is_idle_since(self._probe) and self._traffic == self.traffic)


class PacedPrograms:
    """All programs of a run."""

    def __init__(self, programs: Sequence[PacedProgram], observer: ProgramObserver, loop: Loop) -> None:
        #: In the order of the scenario's schedulers.
        self.programs = programs
        self._loop = loop
        self._observer = observer
        self._logs = [AttemptLog(program.process.log, observer.record_attempt) for program in programs]

    def set_time(self, now: Instant, *, jumped: bool = False) -> None:
        """Set the clock of the run and of every program."""
        self._loop.advance_to(now)
        for program in self.programs:
            program.set_time(now, jumped)

    def serve(self, wait_s: float) -> None:
        """Handle requests, waiting at most `wait_s` for any; bindings are queued instead."""
        for program in self.programs:
            program.server.serve(wait_s / len(self.programs))

    @property
    def has_binding(self) -> bool:
        """Whether a binding is queued."""
        return any(program.server.waiting_bindings for program in self.programs)

    def accept_binding(self) -> bool:
        """Handle one queued binding; return whether there was one."""
        return any(program.server.accept_binding() for program in self.programs)

    @property
    def is_any_busy(self) -> bool:
        """Whether any program may be busy."""
        return any(program.is_busy for program in self.programs)

    def check_running(self) -> None:
        """Check that every program still runs, and read the attempts in its log. Raises RunFailed."""
        for program, log in zip(self.programs, self._logs, strict=True):
            if program.process.has_ended:
                raise program.process.exit_failure(needs_page=False)
            if program.is_attached:
                log.read(self._loop.now)
            else:
                log.discard()

    def failure(self, problem: str) -> RunFailed:
        """Return a RunFailed that blames the main program."""
        return self.programs[0].process.failure(problem)

    def warm_up(self, notes: FidelityNotes) -> None:
        """Run the programs in real time before the run begins, so that they start, list and watch."""
        time = RealTime(self._loop.now)

        def wait(is_over: Callable[[], bool], at_most_s: float) -> None:
            stopwatch = Stopwatch()
            while stopwatch.real_s < at_most_s and not is_over():
                self.set_time(Instant(max(self._loop.now, min(time.now(), _JUST_BEFORE_START))))
                self.serve(TICK_S)
                self.check_running()

        wait(lambda: all(program.traffic for program in self.programs), _CONNECT_TIMEOUT_S)
        wait(_QuietPeriod(self.programs).is_reached, _QUIET_TIMEOUT_S)
        # Fires the timers that programs set for the remaining time before the run.
        self.set_time(_JUST_BEFORE_START, jumped=True)
        wait(lambda: False, _QUIET_S)
        for program in self.programs:
            if not program.is_attached:
                notes.add(_OWN_CLOCK, example=program.process.name)

    def stop(self) -> None:
        """Stop every program."""
        for program in self.programs:
            process = program.process
            self._observer.note_intruders(process.name, process.page.connect_count, program.server.listener)
            process.stop()
            self._observer.note_end(process)
            program.server.close()


class _QuietPeriod:
    """Detects that no program has sent or received anything for a while."""

    def __init__(self, programs: Sequence[PacedProgram]) -> None:
        self._programs = programs
        self._traffic = 0
        self._since = Stopwatch()

    def is_reached(self) -> bool:
        """Return whether all connections have been quiet for `_QUIET_S`."""
        traffic = sum(program.traffic for program in self._programs)
        if traffic != self._traffic:
            self._traffic, self._since = traffic, Stopwatch()
        return self._since.real_s > _QUIET_S
