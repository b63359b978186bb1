"""When schedulers of jobs let them in: before any of a job's pods has a node, its scheduler says that it may have some.

Kueue lets a suspended Job go. Volcano and kube-batch move a PodGroup from `Pending` to `Inqueue` (their action
enqueue), the coscheduling plugin to `Scheduling`. Other schedulers, and jobs that are pods alone, know nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.cluster.references import annotations_of
from batkube.cluster.store import DELETED, Batch, KubeObject
from batkube.cluster.submission_forms import ANNOTATION_JOB
from batkube.cluster.world import World
from batkube.kernel.instants import Instant

#: Of a PodGroup whose pods are not to be placed yet.
_OUTSIDE = ("", "Pending", "PreScheduling", "Unknown")


class Admissions:
    """Listens to what stands for jobs."""

    def __init__(self, world: World, storages: Iterable[str]) -> None:
        """`storages` are the kinds of it, as they are stored."""
        self._journal = world.journal
        #: When each job was let in, for the last time, by its key.
        self.instants: dict[str, Instant] = {}
        for storage in storages:
            world.store.listen(storage, self._hear)

    def _hear(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            return
        for change in batch.changes():
            job = annotations_of(change.object).get(ANNOTATION_JOB)
            was_in = change.previous is not None and _is_in(change.previous)
            if job is not None and _is_in(change.object) and not was_in:
                self.instants[job] = now
                self._journal.append(now, "admit", job=job)


def _is_in(obj: KubeObject) -> bool:
    """Return whether pods of a Job, or of a PodGroup, may be placed."""
    if obj["kind"] == "Job":
        return not obj["spec"].get("suspend")
    return obj.get("status", {}).get("phase", "") not in _OUTSIDE
