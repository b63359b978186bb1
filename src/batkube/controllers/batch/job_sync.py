"""State of one reconciliation of a Job: its pods, classified, and the status to write.

Kubernetes: pkg/controller/job/job_controller.go (type syncJobCtx) and tracking_utils.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.object_meta import Condition, int_annotation, is_being_deleted, new_condition
from batkube.cluster.pods.accessors import is_active, is_finished, is_ready, phase_of
from batkube.cluster.store import KubeObject
from batkube.controllers.batch.completion_indexes import (
    all_indexes,
    format_indexes,
    index_of,
    indexes_of,
    parse_indexes,
)
from batkube.controllers.batch.pod_failures import apply_failure_policy, finished_at, has_failed, replaces_only_failed
from batkube.kernel.instants import Instant
from batkube.kernel.intervals import mask_of

FINALIZER = "batch.kubernetes.io/job-tracking"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"


def has_finalizer(pod: KubeObject) -> bool:
    """Return whether the pod is protected until it is counted."""
    return FINALIZER in pod["metadata"].get("finalizers", ())


def is_suspended(job: KubeObject) -> bool:
    """Return whether the Job is suspended."""
    return bool(job["spec"].get("suspend"))


def job_condition(kind: str, status: str, reason: str, message: str, now: Instant) -> Condition:
    """Return a new condition of a Job."""
    return new_condition(kind, status, reason, message, now, "lastProbeTime")


class JobSync:
    """A Job, its pods, and its new status."""

    def __init__(self, job: KubeObject, pods: Sequence[KubeObject]) -> None:
        self.job = job
        self.spec: KubeObject = job["spec"]
        self.pods = sorted(pods, key=lambda pod: index_of(pod) or 0) if self.is_indexed else list(pods)
        #: The status to write; modified during the reconciliation.
        self.status: KubeObject = dict(job.get("status", {}))
        self.conditions: list[Condition] = list(self.status.get("conditions") or ())
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        self.uncounted_succeeded: list[str] = list(uncounted.get("succeeded") or ())
        self.uncounted_failed: list[str] = list(uncounted.get("failed") or ())
        self.active = [pod for pod in self.pods if is_active(pod)]
        self.ready = sum(is_ready(pod) for pod in self.active)
        self.terminating = sum(is_being_deleted(pod) and not is_finished(pod) for pod in self.pods)
        self.new_succeeded = self._newly_finished(self.uncounted_succeeded, failed=False)
        self.new_failed = self._newly_finished(self.uncounted_failed, failed=True)
        self.failed_count = (
            self.status.get("failed", 0)
            + sum(apply_failure_policy(pod, job).is_counted for pod in self.new_failed)
            + len(self.uncounted_failed)
        )
        self.succeeded_count = self.status.get("succeeded", 0) + len(self.new_succeeded) + len(self.uncounted_succeeded)
        #: The final condition, once it is determined.
        self.finished_condition: Condition | None = None
        #: Indexed Jobs: succeeded indexes according to the status, and those including uncounted pods.
        self.counted_indexes = 0
        self.succeeded_indexes = 0
        self.failed_indexes = 0
        #: By index: the failed pod that is kept until its replacement exists, which inherits its failure count.
        self.delayed_deletion_by_index: dict[int, KubeObject] = {}
        if self.is_indexed:
            self._sync_indexes()

    @property
    def is_indexed(self) -> bool:
        """Whether the Job has completionMode Indexed."""
        return bool(self.spec.get("completionMode") == "Indexed")

    @property
    def has_backoff_limit_per_index(self) -> bool:
        """Whether failures are limited per index."""
        return self.is_indexed and self.spec.get("backoffLimitPerIndex") is not None

    @property
    def completions(self) -> int | None:
        """How many pods must succeed; None if one success completes the Job."""
        count: int | None = self.spec.get("completions")
        return count

    def _newly_finished(self, uncounted: Sequence[str], *, failed: bool) -> list[KubeObject]:
        """Return the finished pods that are not in the status yet."""
        return [
            pod
            for pod in self.pods
            if has_finalizer(pod)
            and pod["metadata"]["uid"] not in uncounted
            and self.is_valid(pod)
            and (has_failed(pod, self.job) if failed else phase_of(pod) == "Succeeded")
        ]

    def is_valid(self, pod: KubeObject) -> bool:
        """Return whether the pod counts. In an Indexed Job it needs a valid index."""
        if not self.is_indexed:
            return True
        index = index_of(pod)
        return index is not None and index < (self.completions or 0)

    def _sync_indexes(self) -> None:
        completions = self.completions or 0
        tracked = [pod for pod in self.pods if has_finalizer(pod)]
        self.counted_indexes = parse_indexes(self.status.get("completedIndexes", ""), completions)
        now_succeeded = indexes_of(pod for pod in tracked if phase_of(pod) == "Succeeded") & all_indexes(completions)
        self.succeeded_indexes = self.counted_indexes | now_succeeded
        self.succeeded_count = self.succeeded_indexes.bit_count()
        if self.has_backoff_limit_per_index:
            previous_indexes = parse_indexes(self.status.get("failedIndexes") or "", completions)
            now_failed = indexes_of(pod for pod in tracked if self._exhausts_index(pod)) & all_indexes(completions)
            self.failed_indexes = previous_indexes | now_failed
            self._find_delayed_deletions()

    def _exhausts_index(self, pod: KubeObject) -> bool:
        """Return whether this failed pod uses up backoffLimitPerIndex."""
        if not has_failed(pod, self.job):
            return False
        result = apply_failure_policy(pod, self.job)
        if result.action == "FailIndex":
            return True
        return result.is_counted and _count_in(pod, FAILURE_COUNT) >= self.spec["backoffLimitPerIndex"]

    def _find_delayed_deletions(self) -> None:
        settled_indexes = self.succeeded_indexes | self.failed_indexes | indexes_of(self.active)
        for pod in self.pods:
            index = index_of(pod)
            if index is None or not has_finalizer(pod) or not self.is_valid(pod) or not has_failed(pod, self.job):
                continue
            if settled_indexes >> index & 1:
                continue
            other = self.delayed_deletion_by_index.get(index)
            if other is None or _failure_order(other) <= _failure_order(pod):
                self.delayed_deletion_by_index[index] = pod

    def occupied_indexes(self) -> int:
        """Return the indexes that need no new pod."""
        occupied = self.succeeded_indexes | self.failed_indexes | indexes_of(self.active)
        if replaces_only_failed(self.job):
            occupied |= indexes_of(pod for pod in self.pods if is_being_deleted(pod) and not is_finished(pod))
        return occupied

    def can_remove_finalizer(self, pod: KubeObject) -> bool:
        """Return whether the pod's finalizer may be removed: it will be counted, or its result no longer matters.

        Kubernetes: canRemoveFinalizer.
        """
        if is_being_deleted(self.job) or self.finished_condition is not None or phase_of(pod) == "Succeeded":
            return True
        if not has_failed(pod, self.job):
            return False
        index = index_of(pod)
        return index is None or self.delayed_deletion_by_index.get(index) is not pod

    def record_uncounted(self, pods: Sequence[KubeObject]) -> None:
        """Record finished `pods`, whose finalizers are about to be removed, in uncountedTerminatedPods."""
        is_success = self.finished_condition is not None and self.finished_condition["type"] == "SuccessCriteriaMet"
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
            elif (has_failed(pod, self.job) or (self.finished_condition is not None and not is_success)) and (
                uid not in self.uncounted_failed
                and self.is_valid(pod)
                and apply_failure_policy(pod, self.job).is_counted
            ):
                self.uncounted_failed.append(uid)
        if self.is_indexed:
            self.succeeded_indexes = self.counted_indexes | mask_of(new_indexes)

    def flush_uncounted(self, uids: Sequence[str]) -> None:
        """Add the uncounted pods with these uids to the counters; their finalizers have been removed.

        Kubernetes: cleanUncountedPodsWithoutFinalizers.
        """
        for name, uncounted in (("succeeded", self.uncounted_succeeded), ("failed", self.uncounted_failed)):
            counted = [uid for uid in uncounted if uid in uids]
            if counted:
                self.status[name] = self.status.get(name, 0) + len(counted)
                uncounted[:] = [uid for uid in uncounted if uid not in uids]

    def build_status(self, active: int) -> KubeObject:
        """Return the Job's new status."""
        status = self.status
        status |= {"active": active, "ready": self.ready, "terminating": self.terminating}
        if not active:
            del status["active"]
        if self.is_indexed:
            status["succeeded"] = self.succeeded_indexes.bit_count()
            status["completedIndexes"] = format_indexes(self.succeeded_indexes)
            if self.has_backoff_limit_per_index:
                status["failedIndexes"] = format_indexes(self.failed_indexes)
        uncounted = {"succeeded": list(self.uncounted_succeeded), "failed": list(self.uncounted_failed)}
        status["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
        if self.conditions:
            status["conditions"] = list(self.conditions)
        return {name: value for name, value in status.items() if value or name not in _OMITTED_WHEN_EMPTY}


#: Fields that Go omits from JSON when they are empty; the others are pointers.
_OMITTED_WHEN_EMPTY = ("active", "succeeded", "failed", "completedIndexes", "conditions")


def _count_in(pod: KubeObject, annotation: str) -> int:
    return int_annotation(pod, annotation) or 0


def failures_of_index(pod: KubeObject) -> int:
    """Return how many pods of this index failed before this pod, including ignored failures."""
    return _count_in(pod, FAILURE_COUNT) + _count_in(pod, IGNORED_FAILURE_COUNT)


def inherited_failures(failed_pod: KubeObject | None, job: KubeObject) -> dict[str, str]:
    """Return the failure-count annotations of a pod that replaces a failed one."""
    if failed_pod is None:
        return {FAILURE_COUNT: "0"}
    counted, ignored = _count_in(failed_pod, FAILURE_COUNT), _count_in(failed_pod, IGNORED_FAILURE_COUNT)
    if apply_failure_policy(failed_pod, job).is_counted:
        counted += 1
    else:
        ignored += 1
    return {FAILURE_COUNT: str(counted), **({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})}


def _failure_order(pod: KubeObject) -> tuple[int, Instant]:
    return failures_of_index(pod), finished_at(pod)
