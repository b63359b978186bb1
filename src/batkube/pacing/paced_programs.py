"""The programs of a run whose time follows the real one: their clocks, their servers, whether they are at work.

A program built with the overlay reads its clock from the page, which is written about every millisecond; each time it
is woken, so that its timers fire. Any other program lives on the machine's own clock.
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
#: Programs have come up when all have connected, for which they have so long,
_CONNECT_TIMEOUT_S = 20.0
#: and then nobody asks anything for so long,
_QUIET_S = 0.25
#: or else after so long: some never stop asking.
_QUIET_TIMEOUT_S = 3.0
_JUST_BEFORE_START = Instant(START - NANOSECONDS_PER_SECOND // 1000)


_OWN_CLOCK = FidelityNote(
    "time", "a program lives on the machine's clock: its timers and back-offs take real time, whatever time it is here"
)


class PacedProgram:
    """One program and the server it talks to."""

    def __init__(self, process: AttachedProcess, server: PacedServer, epoch_ns: int) -> None:
        self.process = process
        self.server = server
        self._page = process.page
        #: The Unix time of the run's zero.
        self._epoch_ns = epoch_ns
        self._probe = 0
        self._traffic = 0

    @property
    def is_attached(self) -> bool:
        """Whether the program lives on the run's clock; a plain one lives on the machine's."""
        return self._page.pid != 0

    @property
    def traffic(self) -> int:
        """Bytes that went to and fro, ever."""
        return self.server.received + self.server.sent

    def set_time(self, now: Instant, jumped: bool) -> None:
        """Move the program's clock, and let its timers notice.

        A jump may give it work, and so may anything that is said; that a millisecond passes hardly does.
        """
        self._page.now = now + self._epoch_ns
        if not self.is_attached:
            return
        number = self._page.probe()
        if jumped or self._traffic != self.traffic:
            self._probe, self._traffic = number, self.traffic

    @property
    def is_busy(self) -> bool:
        """Whether the program has not been idle since it was last given anything to do, as far as can be seen.

        Of a program that lives on the machine's clock only a decision that waits can be seen.
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
        """Move everybody's clock, with the real time or by a jump."""
        self._loop.advance_to(now)
        for program in self.programs:
            program.set_time(now, jumped)

    def serve(self, wait_s: float) -> None:
        """Answer what is asked, waiting at most so long for anything; bindings are not taken."""
        for program in self.programs:
            program.server.serve(wait_s / len(self.programs))

    @property
    def has_binding(self) -> bool:
        """Whether a binding waits to be taken."""
        return any(program.server.waiting_bindings for program in self.programs)

    def accept_binding(self) -> bool:
        """Take one binding, if there is any; return whether there was."""
        return any(program.server.accept_binding() for program in self.programs)

    @property
    def is_any_busy(self) -> bool:
        """Whether any program is at work, as far as can be seen."""
        return any(program.is_busy for program in self.programs)

    def check_running(self) -> None:
        """See that every program is there, and read what it logged by the run's clock. Raises RunFailed."""
        for program, log in zip(self.programs, self._logs, strict=True):
            if program.process.has_ended:
                raise program.process.exit_failure(needs_page=False)
            if program.is_attached:
                log.read(self._loop.now)
            else:
                log.discard()

    def failure(self, problem: str) -> RunFailed:
        """Return the failure of the run by its main program."""
        return self.programs[0].process.failure(problem)

    def warm_up(self, notes: FidelityNotes) -> None:
        """Let the programs start, list and watch, in real time, before the run begins."""
        time = RealTime(self._loop.now)

        def wait(is_over: Callable[[], bool], at_most_s: float) -> None:
            watch = Stopwatch()
            while watch.real_s < at_most_s and not is_over():
                self.set_time(Instant(max(self._loop.now, min(time.now(), _JUST_BEFORE_START))))
                self.serve(TICK_S)
                self.check_running()

        wait(lambda: all(program.traffic for program in self.programs), _CONNECT_TIMEOUT_S)
        wait(_QuietPeriod(self.programs).is_reached, _QUIET_TIMEOUT_S)
        # What the programs had planned for the rest of the time before the run happens now.
        self.set_time(_JUST_BEFORE_START, jumped=True)
        wait(lambda: False, _QUIET_S)
        for program in self.programs:
            if not program.is_attached:
                notes.add(_OWN_CLOCK, example=program.process.name)

    def stop(self) -> None:
        """End every program."""
        for program in self.programs:
            process = program.process
            self._observer.note_intruders(process.name, process.page.connect_count, program.server.listener)
            process.stop()
            self._observer.note_end(process)
            program.server.close()


class _QuietPeriod:
    """Listens for the moment at which nobody has said anything for a while."""

    def __init__(self, programs: Sequence[PacedProgram]) -> None:
        self._programs = programs
        self._traffic = 0
        self._since = Stopwatch()

    def is_reached(self) -> bool:
        """Return whether it is quiet."""
        traffic = sum(program.traffic for program in self._programs)
        if traffic != self._traffic:
            self._traffic, self._since = traffic, Stopwatch()
        return self._since.real_s > _QUIET_S
