"""Descriptions of a run's external programs.

The code that starts them is in `startup.launch`, which is imported only if needed: it loads the API server, which takes
longer than a small run.
"""

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

#: The time before Instant 0 at which programs start, so that they have listed and watch before the first job.
WARM_UP = Duration(60 * NANOSECONDS_PER_SECOND)

Builder = Callable[[str, Catalogue], Path]
"""Returns the binary of a program in a catalogue, building it if necessary."""


@dataclass(frozen=True, slots=True)
class ExternalProgram:
    """A program to attach, and how to start it."""

    #: Its name in the scenario, such as `kube-scheduler@1.34.4`.
    name: str
    #: The binary or script, as recorded in the manifest.
    binary: Path
    start: ProgramStart
    #: The user's arguments, after those of `start`.
    arguments: tuple[str, ...] = ()
    #: The content of its configuration file, with placeholders as in `start`; empty if it has none.
    configuration: Mapping[str, Any] = field(default_factory=dict)
    #: The `schedulerName` of its pods; "" for the main scheduler, which gets all pods that name no other scheduler.
    serves: str = ""
    #: Its folder, relative to that of the main scheduler.
    folder: str = ""
    #: The start of its command line, if not the binary itself.
    command: tuple[str, ...] = ()


class RunServer(NamedTuple):
    """The API server of a run, and its administrator's token."""

    api: Api
    token: str
    #: Requested kinds that do not exist: `podgroups of scheduling.volcano.sh/v1beta1`.
    unknown_kinds: list[str]
    #: Conflicts between schedulers, if there are several.
    conflicts: SchedulerConflicts | None = None


@dataclass(frozen=True, slots=True)
class ProgramSetup:
    """The external programs of a run, and everything needed to start them."""

    world: World
    loop: Loop
    scenario: Scenario
    server: RunServer
    programs: tuple[ExternalProgram, ...]
    observer: ProgramObserver
    #: The main scheduler's folder, which contains a folder for each other program.
    folder: Path


class AttachedProgram(Protocol):
    """An external program of a run."""

    @property
    def process(self) -> AttachedProcess:
        """The operating system process."""


class ProgramTimeDriver(TimeDriver, Protocol):
    """A time driver for the external programs of a run."""

    @property
    def attachments(self) -> Sequence[AttachedProgram]:
        """The programs, in the order of the scenario's schedulers."""

    def columns(self) -> dict[str, str | int]:
        """Return columns for schedule.csv that only this time mode has."""

    def stop(self) -> None:
        """Stop every program."""


class NoPrograms(NextEventTime):
    """A run without external programs: time jumps to the next appointment."""

    attachments: Sequence[AttachedProgram] = ()

    def columns(self) -> dict[str, str | int]:
        """Return no columns."""
        return {}

    def stop(self) -> None:
        """Do nothing."""
