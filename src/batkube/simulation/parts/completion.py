"""When a run's work is done: its jobs have ended, its objects are applied, and what of them ends has ended.

Or at the instant that the scenario gives, whatever has not ended by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.jobs.outcomes import Outcome, PodListener
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant
from batkube.outputs.writers.object_records import ObjectRecords
from batkube.simulation.preparation.objects import ObjectSubmission, never_ends
from batkube.workloads.model import ObjectManifest

if TYPE_CHECKING:
    from batkube.api.manifests import ManifestClient
    from batkube.execution.jobs.gang_monitor import GangMonitor
    from batkube.programs.observation.observer import ProgramObserver


class CompletionTracker:
    """What a run has to do."""

    def __init__(
        self,
        world: World,
        job_count: int,
        outcomes: Sequence[Outcome],
        tell_the_rest: Callable[[], None],
        until: Duration | None,
        observer: ProgramObserver | None = None,
        gangs: GangMonitor | None = None,
    ) -> None:
        """`job_count` is of the jobs of the workloads, whose `outcomes` come in while the run goes on.

        `tell_the_rest` tells of the pods of jobs that have no outcome at the end. `observer` and `gangs` are None where
        no outside program schedules.
        """
        self._world = world
        self._job_count = job_count
        self._outcomes = outcomes
        self._observer = observer
        self._gangs = gangs
        self._objects: ObjectSubmission | None = None
        #: Whether some objects never end; then the run ends when its time is up.
        self._is_endless = False
        #: The pods that should have ended, and that the end of the run has met alive.
        self._running_pods: list[Key] = []
        self._reporters: list[Callable[[], None]] = [tell_the_rest]
        #: What there is to tell of objects; None where nobody could make any.
        self.records: ObjectRecords | None = None
        #: Whether the scheduler may still make jobs of its own.
        self.expects_jobs: Callable[[], bool] = lambda: False
        #: Whether the instant came at which the run is to end in any case.
        self.is_time_up = False
        if until is not None:
            world.agenda.book(Instant(until), Rank.WAKE, self._on_time_up)

    def track_objects(
        self,
        manifests: ManifestClient,
        objects: Sequence[ObjectManifest],
        on_pod: PodListener,
    ) -> None:
        """Apply `objects` at their times, and listen to what becomes of them and of all that others make."""
        on_apply = None if self._observer is None else self._observer.record_activity
        submission = ObjectSubmission(self._world, manifests, objects, on_apply)
        self.records = ObjectRecords(self._world, submission.workload_of, on_pod)
        self._reporters.append(self.records.report_remaining_pods)
        if objects:
            self._objects = submission
            self._is_endless = any(never_ends(manifest) for manifest in objects)
            submission.book_next()

    @property
    def job_count(self) -> int:
        """How many jobs there were: the workloads', and Jobs that were there as objects."""
        return self._job_count + (0 if self.records is None else self.records.job_count)

    @property
    def progress(self) -> tuple[int, int]:
        """How many jobs have ended, and how many there are so far as is known; asked for at every step."""
        ended, known = len(self._outcomes), self._job_count
        if self.records is None:
            return ended, known
        return ended + len(self.records.outcomes), known + self.records.created_job_count

    def is_done(self) -> bool:
        """Return whether nothing is left to wait for, or only what can never come."""
        if self._gangs is not None and self._gangs.is_deadlocked(self._world.clock.now):
            return True
        if self.is_time_up:
            return True
        return len(self._outcomes) >= self._job_count and self._are_objects_done() and not self.expects_jobs()

    def add_job(self) -> None:
        """Wait for one more job than the workloads have."""
        self._job_count += 1

    def _are_objects_done(self) -> bool:
        if self._objects is None or self.records is None:
            return True
        if self._is_endless or not self._objects.is_finished or not self.records.have_all_ended:
            return False
        # Without programs nothing becomes of custom objects.
        return self._observer is None or not self._objects.has_open_custom_objects

    def unfinished(self) -> list[str]:
        """Return the names of Jobs and pods of no job that have not ended and should, and of what was not applied."""
        if self._objects is None or self.records is None:
            return []
        jobs = [f"Job {key}" for key in self.records.open_jobs()]
        return [*jobs, *(f"pod {key}" for key in self._running_pods), *self._objects.unapplied()]

    def report_remaining_pods(self) -> None:
        """Tell of the pods that the end has met alive."""
        self._running_pods = [] if self.records is None else self.records.open_pods()
        for tell in self._reporters:
            tell()

    def _on_time_up(self, now: Instant) -> None:
        self.is_time_up = True
