"""Records when job schedulers admit jobs, which happens before any pod of the job is bound.

Kueue resumes a suspended Job. Volcano and kube-batch move a PodGroup from `Pending` to `Inqueue` (their action
enqueue), the coscheduling plugin to `Scheduling`. Other schedulers and jobs of bare pods have no admission.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.cluster.jobs.submission_forms import ANNOTATION_JOB
from batkube.cluster.object_meta import annotations_of
from batkube.cluster.store import DELETED, Batch, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant

#: The phases of a PodGroup whose pods may not be placed yet.
_NOT_ADMITTED_PHASES = ("", "Pending", "PreScheduling", "Unknown")


class JobAdmissions:
    """Subscribes to the objects that represent jobs."""

    def __init__(self, world: World, storages: Iterable[str]) -> None:
        """`storages` are the stored kinds of these objects."""
        self._journal = world.journal
        #: When each job was last admitted, by its key.
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
    """Return whether the pods of a Job or PodGroup may be placed."""
    if obj["kind"] == "Job":
        return not obj["spec"].get("suspend")
    return obj.get("status", {}).get("phase", "") not in _NOT_ADMITTED_PHASES
