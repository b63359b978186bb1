"""What a run knows of its outside scheduler. The server for it is in `outside`, and imported only where one is used:
it takes longer to load than a small run does to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from batkube.cluster.world import World
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.schedulers.programs import ProgramStart
from batkube.simulation.attempts import AttemptLog
from batkube.simulation.witness import Witness
from batkube.timing.coordinator import Attachment, Coordinator
from batkube.timing.loop import Passage
from batkube.timing.processes import AttachedProcess

if TYPE_CHECKING:
    from batkube.api.assembly import Api

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
    start: ProgramStart
    #: More arguments, after those of its start.
    arguments: tuple[str, ...] = ()
    #: The content of its configuration file, with places left open as in its start; empty if it needs none.
    configuration: Mapping[str, Any] = field(default_factory=dict)
    #: The `schedulerName` of the pods it serves; "" for the run's main scheduler, which serves whatever no other does.
    serves: str = ""
    #: The folder of its files, within that of the main scheduler's.
    folder: str = ""


class RunServer(NamedTuple):
    """The API server of a run, and its administrator's token."""

    api: Api
    token: str


class Attached(Protocol):
    """One outside program of a run."""

    @property
    def process(self) -> AttachedProcess:
        """The program."""


class OutsideRun(Passage, Protocol):
    """The outside programs of a run, and how time goes on for them."""

    @property
    def attachments(self) -> Sequence[Attached]:
        """The programs, in the order of the scenario's schedulers."""

    def columns(self) -> dict[str, str | int]:
        """Return what schedule.csv tells of these time rules alone."""

    def stop(self) -> None:
        """End every program."""


class Coordinated:
    """Outside programs whose clock moves only when all of them are idle."""

    def __init__(
        self, world: World, attachments: Sequence[Attachment], witness: Witness, patience: Duration, epoch_ns: int
    ) -> None:
        """`patience` is for how long, in virtual time, nothing may change when nothing is due."""
        self.attachments = attachments
        self._agenda = world.agenda
        self._clock = world.clock
        self._coordinator = Coordinator(attachments, epoch_ns)
        self._witness = witness
        self._patience = patience
        self._logs = [AttemptLog(attachment.process.log, witness.hear_attempt) for attachment in attachments]
        #: How much had changed in the cluster when something last did, and when that was. A program that only keeps
        #: itself busy changes nothing.
        self._activity, self._active = witness.activity, world.clock.now

    def go_on(self) -> Instant | None:
        """Settle everybody; then, unless that made something due, move to what is due or done next."""
        now = self._clock.now
        self._coordinator.settle(now)
        self._observe(now)
        if self._witness.activity != self._activity:
            self._activity, self._active = self._witness.activity, now
        due, end = self._agenda.due, Instant(self._active + self._patience)
        if due is not None and due <= now:
            return now
        if len(self._agenda) == 0:
            # Nothing is due, or only what would be for ever.
            if now >= end:
                return None
            due = end if due is None else min(due, end)
        assert due is not None, "what is on the agenda is due"
        reached = self._coordinator.advance(now, due)
        self._observe(reached)
        return reached

    def columns(self) -> dict[str, str | int]:
        """Return nothing: here time has no part in the results."""
        return {}

    def _observe(self, now: Instant) -> None:
        """Take note of what the programs logged up to `now`."""
        for log in self._logs:
            log.read(now)

    def stop(self) -> None:
        """End every program."""
        for attachment in self.attachments:
            attachment.server.admit()
            name, page, door = attachment.process.name, attachment.page, attachment.server.door
            elsewhere = page.connects - door.let_in - door.vanished
            self._witness.note_others(name, elsewhere, page.bytes_read - attachment.server.sent)
            self._witness.note_strangers(name, page.connects, door)
        self._coordinator.stop()
        for log in self._logs:
            log.close()
