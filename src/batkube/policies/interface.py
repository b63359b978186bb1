"""What a policy is.

A policy is asked `decide(view)` whenever something changed: a job arrived, a job ended, a wake-up it asked for. It
*yields* decisions, and each one has taken effect before its next line runs, so that `view.free` and `view.queue`
always tell the truth:

    class SmallestFirst(Policy):
        def decide(self, view: View) -> Iterator[Decision]:
            for job in sorted(view.queue, key=lambda job: job.size):
                placement = view.free.fit(job)
                if placement is not None:
                    yield Start(job, placement)

That is a whole policy, and works for both resource models: `view.free` is a `Room` (see rooms.py), which knows
whether jobs take whole machines or pack by their requests.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from batkube.cluster.decisions import Decision
from batkube.kernel.instants import Duration, Instant
from batkube.platforms.model import Machine
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Job

#: What a policy is written with.
__all__ = ["Decision", "Evict", "Policy", "Reject", "Running", "Start", "SwitchOff", "SwitchOn", "View", "WakeAt"]


class Start(Decision, frozen=True):
    """Run `job`, which is in the queue, at `placement` now."""

    job: Job
    placement: Placement


class Evict(Decision, frozen=True):
    """Stop the running `job` to make room; the run's configuration says whether it is queued again or fails."""

    job: Job


class Reject(Decision, frozen=True):
    """Never run `job`, which is in the queue."""

    job: Job
    reason: str


class WakeAt(Decision, frozen=True):
    """Ask again at `at`, even if nothing happens until then."""

    at: Instant


class SwitchOff(Decision, frozen=True):
    """Send machines to sleep that run nothing: they take no jobs, and draw what their platform says of sleep.

    Going to sleep takes time, and so does waking up. Only in runs that count energy.
    """

    machine_ids: tuple[int, ...]


class SwitchOn(Decision, frozen=True):
    """Wake machines that were sent to sleep; once they are awake they are among the policy's machines again."""

    machine_ids: tuple[int, ...]


class Running(Protocol):
    """A job that was started and has not ended."""

    @property
    def job(self) -> Job:
        """The job that runs."""

    @property
    def placement(self) -> Placement:
        """The machines, or parts of them, that it occupies; without those that take no more jobs."""

    @property
    def since(self) -> Instant:
        """When it was started."""

    @property
    def until(self) -> Instant:
        """When it must have ended, by its estimate; a job that is overdue counts as ending any moment now."""


class View(Protocol):
    """What a policy may know: the present, never a job's future."""

    @property
    def now(self) -> Instant:
        """The present: decisions are taken at this instant."""

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
        """What is free now."""

    @property
    def arrived(self) -> Sequence[Job]:
        """Jobs that joined the queue since the last call, in order; one started during this call stays in the list.

        After machines have changed: all jobs that wait.
        """

    @property
    def ended(self) -> Sequence[Job]:
        """Jobs that released their resources since the last call, in order."""

    def estimate(self, job: Job) -> Duration:
        """How long `job` will take at most, as far as a scheduler can know: its walltime.

        A job without walltime is estimated at its true run time, and the run then carries a fidelity note.
        """


class Policy:
    """A scheduling algorithm. Subclass it and write `decide`.

    Keyword arguments of the constructor become `--scheduler-arg name=value` of the command line.
    """

    #: Whether it is to be asked when machines change though no job waits.
    watches_machines = False
    #: The policy's own stream of randomness, set by `begin`.
    rng: random.Random

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Called before the first decision, and again whenever machines have come, gone or changed.

        A machine that takes no jobs, because its node is lost, cordoned or tainted, has no capacity in `machines`.
        After such a change all jobs that wait count as arrived, so that plans can be made anew. `rng` is seeded by the
        run's seed.
        """
        self.rng = rng

    def decide(self, view: View) -> Iterator[Decision]:
        """Yield decisions; each takes effect before the next is asked for."""
        raise NotImplementedError
