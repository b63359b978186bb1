"""What a run knows of its outside scheduler. The server for it is in `outside`, and imported only where one is used:
it takes longer to load than a small run does to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.simulation.attempts import AttemptLog
from batkube.simulation.witness import Witness
from batkube.timing.coordinator import Attachment, Coordinator

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
    #: More arguments, after ours.
    arguments: tuple[str, ...] = ()
    #: A KubeSchedulerConfiguration of the user's.
    configuration: Path | None = None
    #: The `schedulerName` of the pods it serves; "" for the run's main scheduler, which serves whatever no other does.
    serves: str = ""


@dataclass(frozen=True, slots=True)
class Coordinated:
    """The outside programs of a run and what moves their clock."""

    coordinator: Coordinator
    #: In the order of the scenario's schedulers.
    attachments: Sequence[Attachment]
    logs: Sequence[AttemptLog]
    witness: Witness

    def observe(self, now: Instant) -> None:
        """Take note of what the programs logged up to `now`."""
        for log in self.logs:
            log.read(now)

    def stop(self) -> None:
        """End every program."""
        self.coordinator.stop()
        for log in self.logs:
            log.close()
