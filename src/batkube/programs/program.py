"""What a run knows of its outside programs. What starts them is in `launch`, and imported only where one is used: the
API server takes longer to load than a small run does to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from batkube.cluster.world import World
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration
from batkube.programs.observation.conflicts import SchedulerConflicts
from batkube.scenarios.scenario import Scenario
from batkube.schedulers.catalogue import Catalogue
from batkube.schedulers.named_programs import ProgramStart
from batkube.timing.loop import Loop, NextEventTime, TimeDriver
from batkube.timing.processes.attached_process import AttachedProcess

if TYPE_CHECKING:
    from batkube.api.assembly import Api
    from batkube.programs.observation.observer import ProgramObserver

#: How long before the first instant of a run its programs are started: they come up, list and watch before any job.
WARM_UP = Duration(60 * NANOSECONDS_PER_SECOND)

Builder = Callable[[str, Catalogue], Path]
"""Gives the program of a name in a catalogue, building it if need be."""


@dataclass(frozen=True, slots=True)
class ExternalProgram:
    """A program to attach, and how to start it."""

    #: As the scenario names it: `kube-scheduler@1.34.4`.
    name: str
    #: The file that makes it what it is: the program, or the script.
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
    #: What its command line begins with, if not with the program itself.
    command: tuple[str, ...] = ()


class RunServer(NamedTuple):
    """The API server of a run, and its administrator's token."""

    api: Api
    token: str
    #: What programs have asked for and no kind answers to: `podgroups of scheduling.volcano.sh/v1beta1`.
    unknown_kinds: list[str]
    #: What the programs do to one another, where several schedule.
    conflicts: SchedulerConflicts | None = None


@dataclass(frozen=True, slots=True)
class ProgramSetup:
    """The outside programs of a run, and all that it takes to start them."""

    world: World
    loop: Loop
    scenario: Scenario
    server: RunServer
    programs: tuple[ExternalProgram, ...]
    observer: ProgramObserver
    #: Of their files: the main scheduler's own, with a folder for each of the others.
    folder: Path


class AttachedProgram(Protocol):
    """One outside program of a run."""

    @property
    def process(self) -> AttachedProcess:
        """The program."""


class ProgramTimeDriver(TimeDriver, Protocol):
    """The outside programs of a run, and how time goes on for them."""

    @property
    def attachments(self) -> Sequence[AttachedProgram]:
        """The programs, in the order of the scenario's schedulers."""

    def columns(self) -> dict[str, str | int]:
        """Return what schedule.csv tells of these time rules alone."""

    def stop(self) -> None:
        """End every program."""


class NoPrograms(NextEventTime):
    """A run without outside programs: nobody has to be waited for, and time jumps to what is due."""

    attachments: Sequence[AttachedProgram] = ()

    def columns(self) -> dict[str, str | int]:
        """Return nothing."""
        return {}

    def stop(self) -> None:
        """Do nothing."""
