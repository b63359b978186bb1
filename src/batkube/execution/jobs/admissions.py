"""When schedulers of jobs let them in: before any of a job's pods has a node, its scheduler says that it may have some.

Kueue lets a suspended Job go. Volcano and kube-batch move a PodGroup from `Pending` to `Inqueue` (their action
enqueue), the coscheduling plugin to `Scheduling`. Other schedulers, and jobs that are pods alone, know nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.cluster.jobs.submission_forms import ANNOTATION_JOB
from batkube.cluster.object_meta import annotations_of
from batkube.cluster.store import DELETED, Batch, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant

#: Of a PodGroup whose pods are not to be placed yet.
_NOT_ADMITTED_PHASES = ("", "Pending", "PreScheduling", "Unknown")


class JobAdmissions:
    """Listens to what stands for jobs."""

    def __init__(self, world: World, storages: Iterable[str]) -> None:
        """`storages` are the kinds of it, as they are stored."""
        self._journal = world.journal
        #: When each job was let in, for the last time, by its key.
        self.admitted_at: dict[str, Instant] = {}
        for storage in storages:
            world.store.subscribe(storage, self._on_objects_changed)

    def _on_objects_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            return
        for change in batch.changes():
            job = annotations_of(change.object).get(ANNOTATION_JOB)
            was_in = change.previous is not None and _is_admitted(change.previous)
            if job is not None and _is_admitted(change.object) and not was_in:
                self.admitted_at[job] = now
                self._journal.append(now, "admit", job=job)


def _is_admitted(obj: KubeObject) -> bool:
    """Return whether pods of a Job, or of a PodGroup, may be placed."""
    if obj["kind"] == "Job":
        return not obj["spec"].get("suspend")
    return obj.get("status", {}).get("phase", "") not in _NOT_ADMITTED_PHASES
