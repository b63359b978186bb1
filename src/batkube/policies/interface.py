"""The interface of policies.

`decide(view)` is called whenever something has changed: a job arrived, a job ended, or a requested wake-up is due. It
*yields* decisions. Each takes effect before the generator resumes, so that `view.free` and `view.queue` are always up
to date:

    class SmallestFirst(Policy):
        def decide(self, view: View) -> Iterator[Decision]:
            for job in sorted(view.queue, key=lambda job: job.size):
                placement = view.free.fit(job)
                if placement is not None:
                    yield Start(job, placement)

This policy is complete, and works for both resource models: `view.free` is a `Room` (see rooms.py), for whole machines
or for packing by requests.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from batkube.cluster.decisions import Decision
from batkube.kernel.instants import Duration, Instant
from batkube.platforms.model import Machine
from batkube.policies.reasons import Reason
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Job

#: The names that a policy imports.
__all__ = [
    "Decision",
    "Evict",
    "Policy",
    "Reject",
    "Running",
    "Start",
    "SwitchOff",
    "SwitchOn",
    "View",
    "Wait",
    "WakeAt",
]


class Start(Decision, frozen=True):
    """Start `job`, which is in the queue, on `placement` now."""

    job: Job
    placement: Placement
    #: Recorded if `view.is_explained`.
    reason: Reason | str | None = None


class Evict(Decision, frozen=True):
    """Stop the running `job` to free its resources; the scenario determines whether it is queued again or fails."""

    job: Job
    #: Recorded if `view.is_explained`.
    reason: Reason | str | None = None


class Reject(Decision, frozen=True):
    """Reject `job`, which is in the queue: it never runs."""

    job: Job
    reason: str


class Wait(Decision, frozen=True):
    """Leave `job` in the queue, and record why. Without effect on the run."""

    job: Job
    reason: Reason | str


class WakeAt(Decision, frozen=True):
    """Call `decide` again at `at`, even if nothing happens until then."""

    at: Instant


class SwitchOff(Decision, frozen=True):
    """Send idle machines to sleep: they take no jobs, and draw the power that the platform defines for sleep.

    Going to sleep and waking up take time. Only in runs with energy accounting.
    """

    machine_ids: tuple[int, ...]


class SwitchOn(Decision, frozen=True):
    """Wake sleeping machines; the policy can use them again once they are awake."""

    machine_ids: tuple[int, ...]


class Running(Protocol):
    """A job that was started and has not ended."""

    @property
    def job(self) -> Job:
        """The job that runs."""

    @property
    def placement(self) -> Placement:
        """The machines, or parts of them, that it occupies, except machines that no longer take jobs."""

    @property
    def since(self) -> Instant:
        """When it was started."""

    @property
    def until(self) -> Instant:
        """When it must have ended, by its estimate; an overdue job counts as ending at any moment."""


class View(Protocol):
    """What a policy can see: the present, never a job's future."""

    @property
    def now(self) -> Instant:
        """The current instant, at which decisions take effect."""

    @property
    def queue(self) -> Sequence[Job]:
        """Jobs waiting, in order of submission. May be iterated while decisions are yielded."""

    @property
    def head(self) -> Job | None:
        """The job at the front of the queue, or None."""

    @property
    def running(self) -> Sequence[Running]:
        """Jobs started and not ended, ascending by `until`, then by start."""

    @property
    def free(self) -> Room:
        """The free capacity now."""

    @property
    def arrived(self) -> Sequence[Job]:
        """Jobs added to the queue since the last call, in order; a job started during this call stays in the list.

        After a change of machines, all waiting jobs.
        """

    @property
    def ended(self) -> Sequence[Job]:
        """Jobs that released their resources since the last call, in order."""

    @property
    def is_explained(self) -> bool:
        """Whether reasons are recorded (`--explain`). If not, a policy should not compute any."""

    def run_time(self, job: Job) -> Duration | None:
        """Return how long a job in `ended` ran: from its `Start` until its resources were released.

        None if it never started, or is not in `ended`. An evicted job ran until it was evicted.
        """

    def estimate(self, job: Job) -> Duration:
        """Return the maximum run time of `job` that a scheduler can know: its walltime.

        For a job without a walltime this is its true run time, which adds a fidelity note to the run.
        """


class Policy:
    """A scheduling algorithm. Subclass it and implement `decide`.

    Keyword arguments of the constructor become `--scheduler-arg name=value` of the command line.
    """

    #: Whether `decide` is called when machines change although no job waits.
    watches_machines = False
    #: The policy's own stream of randomness, set by `begin`.
    rng: random.Random

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Called before the first decision, and again whenever machines are added, removed or changed.

        A machine that takes no jobs, because its node is lost, cordoned or tainted, has no capacity in `machines`.
        After such a change all waiting jobs count as arrived, so that plans can be rebuilt. `rng` is seeded by the
        run's seed.
        """
        self.rng = rng

    def decide(self, view: View) -> Iterator[Decision]:
        """Yield decisions; each takes effect before the next one is requested."""
        raise NotImplementedError
