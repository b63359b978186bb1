"""Determine when a run is complete.

It is complete when all jobs have ended, all objects are applied, and all objects that can end have ended; or at the
instant `until` of the scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.jobs.outcomes import Outcome, PodListener
from batkube.cluster.mapping import POD
from batkube.cluster.pods.accessors import phase_of
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
    """Tracks the jobs and objects that a run waits for."""

    def __init__(
        self,
        world: World,
        job_count: int,
        outcomes: Sequence[Outcome],
        report_remaining: Callable[[], None],
        until: Duration | None,
        observer: ProgramObserver | None = None,
        gangs: GangMonitor | None = None,
    ) -> None:
        """Track `job_count` jobs of the workloads; the list `outcomes` grows during the run.

        `report_remaining` reports the pods of jobs without an outcome at the end. `observer` and `gangs` are None if no
        external program schedules.
        """
        self._world = world
        self._job_count = job_count
        self._outcomes = outcomes
        self._observer = observer
        self._gangs = gangs
        self._objects: ObjectSubmission | None = None
        #: Whether some objects never end; the run then ends at `until`.
        self._is_endless = False
        #: The pods that should have ended before the run, but had not.
        self._running_pods: list[Key] = []
        self._reporters: list[Callable[[], None]] = [report_remaining]
        #: The records of objects; None if the run has no API and so no objects.
        self.records: ObjectRecords | None = None
        #: Whether the scheduler can still register jobs.
        self.expects_jobs: Callable[[], bool] = lambda: False
        #: Whether `until` was reached.
        self.is_time_up = False
        if until is not None:
            world.agenda.is_endless = True  # what is due after the longest run is due after `until`
            world.agenda.book(Instant(until), Rank.WAKE, self._on_time_up)

    def track_objects(
        self,
        manifests: ManifestClient,
        objects: Sequence[ObjectManifest],
        on_pod: PodListener,
    ) -> None:
        """Apply `objects` at their times, and track them and all objects that clients create."""
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
        """The number of the workloads' jobs and of Job objects."""
        return self._job_count + (0 if self.records is None else self.records.job_count)

    @property
    def progress(self) -> tuple[int, int]:
        """The number of ended jobs, and of all jobs so far. Must be cheap: it is read at every step."""
        ended, total = len(self._outcomes), self._job_count
        if self.records is None:
            return ended, total
        return ended + len(self.records.outcomes), total + self.records.created_job_count

    def is_done(self) -> bool:
        """Return whether the run is complete, or deadlocked."""
        if self._gangs is not None and self._gangs.is_deadlocked(self._world.clock.now):
            return True
        if self.is_time_up:
            return True
        return len(self._outcomes) >= self._job_count and self._are_objects_done() and not self.expects_jobs()

    def add_job(self) -> None:
        """Expect one more job, which the scheduler has registered."""
        self._job_count += 1

    def _are_objects_done(self) -> bool:
        if self._objects is None or self.records is None:
            return True
        if self._is_endless or not self._objects.is_finished or not self.records.have_all_ended:
            return False
        # A custom object counts as open until its status reports its end: its controller can still create pods for it.
        # Without programs, nothing acts on custom objects.
        return self._observer is None or not self._objects.has_open_custom_objects

    def unfinished(self) -> list[str]:
        """Return the names of Jobs and other pods that should have ended, and of objects that were not applied."""
        if self._objects is None or self.records is None:
            return []
        jobs = [f"Job {key}" for key in self.records.open_jobs()]
        return [*jobs, *(f"pod {key}" for key in self._running_pods), *self._objects.unapplied()]

    def endless_pods(self) -> list[str]:
        """Return the remaining pods that are running: if nothing more is due, they never end."""
        pods = self._world.store.all(POD)
        return [key for key in self._running_pods if phase_of(pods[key]) == "Running"]

    def report_remaining_pods(self) -> None:
        """Report the pods that have not ended."""
        self._running_pods = [] if self.records is None else self.records.open_pods()
        for report in self._reporters:
            report()

    def _on_time_up(self, now: Instant) -> None:
        self.is_time_up = True
