"""What a run knows of its outside scheduler. The server for it is in `outside`, and imported only where one is used:
it takes longer to load than a small run does to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from batkube.kernel.agenda import Agenda
from batkube.kernel.clock import Clock
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.schedulers.programs import Start
from batkube.simulation.attempts import AttemptLog
from batkube.simulation.witness import Witness
from batkube.timing.coordinator import Attachment, Coordinator, run_coordinated
from batkube.timing.processes import AttachedProcess

#: How long before the first instant of a run its programs are started: they come up, list and watch before any job.
WARM_UP = Duration(60 * NANOSECONDS_PER_SECOND)

Builder = Callable[[str], Path]
"""Gives the program of a scheduler's name, building it if need be."""


@dataclass(frozen=True, slots=True)
class OutsideScheduler:
    """A program to attach, and how to start it."""

    #: As the scenario names it: `kube-scheduler@1.34.4`.
    name: str
    binary: Path
    start: Start
    #: More arguments, after those of its start.
    arguments: tuple[str, ...] = ()
    #: The content of its configuration file, with places left open as in its start; empty if it needs none.
    configuration: Mapping[str, Any] = field(default_factory=dict)
    #: The `schedulerName` of the pods it serves; "" for the run's main scheduler, which serves whatever no other does.
    serves: str = ""
    #: The folder of its files, within that of the main scheduler's.
    folder: str = ""


class Attached(Protocol):
    """One outside program of a run."""

    @property
    def process(self) -> AttachedProcess:
        """The program."""


class OutsideRun(Protocol):
    """The outside programs of a run and what moves their clock, by whichever rules."""

    @property
    def attachments(self) -> Sequence[Attached]:
        """The programs, in the order of the scenario's schedulers."""

    def run(self, is_done: Callable[[], bool], progress: Callable[[Instant], None]) -> None:
        """Run until `is_done`, or until nothing is to be expected any more."""

    def columns(self) -> dict[str, str | int]:
        """Return what schedule.csv tells of these time rules alone."""

    def stop(self) -> None:
        """End every program."""


@dataclass(frozen=True, slots=True)
class Coordinated:
    """Outside programs whose clock moves only when all of them are idle."""

    coordinator: Coordinator
    attachments: Sequence[Attachment]
    logs: Sequence[AttemptLog]
    witness: Witness
    agenda: Agenda
    clock: Clock
    #: In virtual time: when nothing is due and nobody does anything for so long, the run is given up.
    patience: Duration

    def run(self, is_done: Callable[[], bool], progress: Callable[[Instant], None]) -> None:
        """Run until `is_done`, or out of patience."""
        run_coordinated(
            self.coordinator,
            self.agenda,
            self.clock,
            is_done=is_done,
            activity=lambda: self.witness.activity,
            patience=self.patience,
            observe=self.observe,
            progress=progress,
        )

    def columns(self) -> dict[str, str | int]:
        """Return nothing: here time has no part in the results."""
        return {}

    def observe(self, now: Instant) -> None:
        """Take note of what the programs logged up to `now`."""
        for log in self.logs:
            log.read(now)

    def stop(self) -> None:
        """End every program."""
        for attachment in self.attachments:
            attachment.server.admit()
            name, page, door = attachment.process.name, attachment.page, attachment.server.door
            elsewhere = page.connects - door.let_in - door.vanished
            self.witness.note_others(name, elsewhere, page.bytes_read - attachment.server.sent)
            self.witness.note_strangers(name, page.connects, door)
        self.coordinator.stop()
        for log in self.logs:
            log.close()
