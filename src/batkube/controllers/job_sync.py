"""One look at a Job: its pods sorted into what they mean, before anything is done about it.

Kubernetes: pkg/controller/job, type syncJobCtx and its helpers.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.pods import is_active, is_finished, is_ready, phase_of
from batkube.cluster.references import Condition, is_being_deleted, new_condition, number_in
from batkube.cluster.store import KubeObject
from batkube.controllers.completion_indexes import below, format_indexes, index_of, indexes_of, parse_indexes
from batkube.controllers.pod_failures import finished_at, has_failed, replaces_only_failed, verdict_on
from batkube.kernel.instants import Instant
from batkube.kernel.intervals import mask_of

FINALIZER = "batch.kubernetes.io/job-tracking"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"


def has_finalizer(pod: KubeObject) -> bool:
    """Return whether the pod is kept for counting."""
    return FINALIZER in pod["metadata"].get("finalizers", ())


def is_suspended(job: KubeObject) -> bool:
    """Return whether the Job is to have no pods for now."""
    return bool(job["spec"].get("suspend"))


def job_condition(kind: str, status: str, reason: str, message: str, now: Instant) -> Condition:
    """Return a condition of a Job that begins now."""
    return new_condition(kind, status, reason, message, now, "lastProbeTime")


class JobSync:
    """A Job, its pods, and the status it is going to have."""

    def __init__(self, job: KubeObject, pods: Sequence[KubeObject]) -> None:
        self.job = job
        self.spec: KubeObject = job["spec"]
        self.pods = sorted(pods, key=lambda pod: index_of(pod) or 0) if self.is_indexed else list(pods)
        #: The status to write; edited as the look goes on.
        self.status: KubeObject = dict(job.get("status", {}))
        self.conditions: list[Condition] = list(self.status.get("conditions") or ())
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        self.uncounted_succeeded: list[str] = list(uncounted.get("succeeded") or ())
        self.uncounted_failed: list[str] = list(uncounted.get("failed") or ())
        self.active = [pod for pod in self.pods if is_active(pod)]
        self.ready = sum(is_ready(pod) for pod in self.active)
        self.terminating = sum(is_being_deleted(pod) and not is_finished(pod) for pod in self.pods)
        self.new_succeeded = self._new(self.uncounted_succeeded, failed=False)
        self.new_failed = self._new(self.uncounted_failed, failed=True)
        self.failed_count = (
            self.status.get("failed", 0)
            + sum(verdict_on(pod, job).counts for pod in self.new_failed)
            + len(self.uncounted_failed)
        )
        self.succeeded_count = self.status.get("succeeded", 0) + len(self.new_succeeded) + len(self.uncounted_succeeded)
        #: How the Job ends, once that is known.
        self.verdict: Condition | None = None
        #: Of an Indexed Job: indexes that succeeded as its status tells, and with the pods not counted yet.
        self.counted_indexes = 0
        self.succeeded_indexes = 0
        self.failed_indexes = 0
        #: By index: the failed pod that is kept until its successor, which inherits its count of failures, is there.
        self.kept_for_successor: dict[int, KubeObject] = {}
        if self.is_indexed:
            self._sort_by_index()

    @property
    def is_indexed(self) -> bool:
        """Whether each completion has its index."""
        return bool(self.spec.get("completionMode") == "Indexed")

    @property
    def limits_each_index(self) -> bool:
        """Whether failures are limited by index and not for the whole Job."""
        return self.is_indexed and self.spec.get("backoffLimitPerIndex") is not None

    @property
    def completions(self) -> int | None:
        """How many pods must succeed; None when any one will do."""
        count: int | None = self.spec.get("completions")
        return count

    def _new(self, uncounted: Sequence[str], *, failed: bool) -> list[KubeObject]:
        """Return the pods that ended and of which the status does not know."""
        return [
            pod
            for pod in self.pods
            if has_finalizer(pod)
            and pod["metadata"]["uid"] not in uncounted
            and self.is_valid(pod)
            and (has_failed(pod, self.job) if failed else phase_of(pod) == "Succeeded")
        ]

    def is_valid(self, pod: KubeObject) -> bool:
        """Return whether the pod counts: any does, unless it lacks an index of an Indexed Job."""
        if not self.is_indexed:
            return True
        index = index_of(pod)
        return index is not None and index < (self.completions or 0)

    def _sort_by_index(self) -> None:
        completions = self.completions or 0
        tracked = [pod for pod in self.pods if has_finalizer(pod)]
        self.counted_indexes = parse_indexes(self.status.get("completedIndexes", ""), completions)
        now_succeeded = indexes_of(pod for pod in tracked if phase_of(pod) == "Succeeded") & below(completions)
        self.succeeded_indexes = self.counted_indexes | now_succeeded
        self.succeeded_count = self.succeeded_indexes.bit_count()
        if self.limits_each_index:
            earlier = parse_indexes(self.status.get("failedIndexes") or "", completions)
            now_failed = indexes_of(pod for pod in tracked if self._spends_index(pod)) & below(completions)
            self.failed_indexes = earlier | now_failed
            self._find_kept()

    def _spends_index(self, pod: KubeObject) -> bool:
        """Return whether the failure of this pod is the last that its index may have."""
        if not has_failed(pod, self.job):
            return False
        verdict = verdict_on(pod, self.job)
        if verdict.action == "FailIndex":
            return True
        return verdict.counts and _count(pod, FAILURE_COUNT) >= self.spec["backoffLimitPerIndex"]

    def _find_kept(self) -> None:
        settled = self.succeeded_indexes | self.failed_indexes | indexes_of(self.active)
        for pod in self.pods:
            index = index_of(pod)
            if index is None or not has_finalizer(pod) or not self.is_valid(pod) or not has_failed(pod, self.job):
                continue
            if settled >> index & 1:
                continue
            rival = self.kept_for_successor.get(index)
            if rival is None or _failure_order(rival) <= _failure_order(pod):
                self.kept_for_successor[index] = pod

    def taken_indexes(self) -> int:
        """Return the indexes that need no new pod."""
        taken = self.succeeded_indexes | self.failed_indexes | indexes_of(self.active)
        if replaces_only_failed(self.job):
            taken |= indexes_of(pod for pod in self.pods if is_being_deleted(pod) and not is_finished(pod))
        return taken

    def may_forget(self, pod: KubeObject) -> bool:
        """Return whether the pod's finalizer may go: it is counted, or no longer matters."""
        if is_being_deleted(self.job) or self.verdict is not None or phase_of(pod) == "Succeeded":
            return True
        if not has_failed(pod, self.job):
            return False
        index = index_of(pod)
        return index is None or self.kept_for_successor.get(index) is not pod

    def count(self, pods: Sequence[KubeObject]) -> None:
        """Note `pods`, whose finalizers are going to be removed, as ended but uncounted."""
        ended_well = self.verdict is not None and self.verdict["type"] == "SuccessCriteriaMet"
        new_indexes = []
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if phase_of(pod) == "Succeeded" and uid not in self.uncounted_failed:
                index = index_of(pod)
                if not self.is_indexed:
                    if uid not in self.uncounted_succeeded:
                        self.uncounted_succeeded.append(uid)
                elif index is not None and self.is_valid(pod):
                    new_indexes.append(index)
            elif (has_failed(pod, self.job) or (self.verdict is not None and not ended_well)) and (
                uid not in self.uncounted_failed and self.is_valid(pod) and verdict_on(pod, self.job).counts
            ):
                self.uncounted_failed.append(uid)
        if self.is_indexed:
            self.succeeded_indexes = self.counted_indexes | mask_of(new_indexes)

    def settle(self, gone: Sequence[str]) -> None:
        """Count the pods with these uids, whose finalizers are removed, for good."""
        for name, uncounted in (("succeeded", self.uncounted_succeeded), ("failed", self.uncounted_failed)):
            settled = [uid for uid in uncounted if uid in gone]
            if settled:
                self.status[name] = self.status.get(name, 0) + len(settled)
                uncounted[:] = [uid for uid in uncounted if uid not in gone]

    def written_status(self, active: int) -> KubeObject:
        """Return the Job's status as it stands."""
        status = self.status
        status |= {"active": active, "ready": self.ready, "terminating": self.terminating}
        if not active:
            del status["active"]
        if self.is_indexed:
            status["succeeded"] = self.succeeded_indexes.bit_count()
            status["completedIndexes"] = format_indexes(self.succeeded_indexes)
            if self.limits_each_index:
                status["failedIndexes"] = format_indexes(self.failed_indexes)
        uncounted = {"succeeded": list(self.uncounted_succeeded), "failed": list(self.uncounted_failed)}
        status["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
        if self.conditions:
            status["conditions"] = list(self.conditions)
        return {name: value for name, value in status.items() if value or name not in _OMITTED_WHEN_EMPTY}


#: Fields of a Job's status that are left out of JSON when they are empty (the others are pointers).
_OMITTED_WHEN_EMPTY = ("active", "succeeded", "failed", "completedIndexes", "conditions")


def _count(pod: KubeObject, annotation: str) -> int:
    return number_in(pod, annotation) or 0


def failures_of_index(pod: KubeObject) -> int:
    """Return how many pods of its index failed before this one, ignored ones included."""
    return _count(pod, FAILURE_COUNT) + _count(pod, IGNORED_FAILURE_COUNT)


def inherited_failures(replaced: KubeObject | None, job: KubeObject) -> dict[str, str]:
    """Return the annotations that tell a new pod of an index how many before it failed."""
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    counted, ignored = _count(replaced, FAILURE_COUNT), _count(replaced, IGNORED_FAILURE_COUNT)
    if verdict_on(replaced, job).counts:
        counted += 1
    else:
        ignored += 1
    return {FAILURE_COUNT: str(counted), **({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})}


def _failure_order(pod: KubeObject) -> tuple[int, Instant]:
    return failures_of_index(pod), finished_at(pod)
