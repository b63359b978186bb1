"""Failures of a Job's pods: whether they count, when they happened, and the back-off delay.

Kubernetes: pkg/controller/job/pod_failure_policy.go and backoff_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from batkube.cluster.object_meta import condition_of, is_being_deleted
from batkube.cluster.pods.accessors import phase_of
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, instant_of, seconds

_FIRST_BACKOFF: Duration = seconds(10)
_MAX_BACKOFF: Duration = seconds(600)


def replaces_only_failed(job: KubeObject) -> bool:
    """Return whether pods are replaced only after they have failed, not while they terminate.

    Kubernetes: onlyReplaceFailedPods.
    """
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def has_failed(pod: KubeObject, job: KubeObject) -> bool:
    """Return whether the pod counts as failed. A terminating pod does, unless only failed pods are replaced.

    Kubernetes: isPodFailed.
    """
    phase = phase_of(pod)
    if phase == "Failed":
        return True
    return not replaces_only_failed(job) and is_being_deleted(pod) and phase != "Succeeded"


class FailurePolicyResult(NamedTuple):
    """Result of the pod failure policy for a failed pod."""

    action: str = "Count"
    #: For FailJob: why the Job fails.
    message: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether the failure counts towards backoffLimit."""
        return self.action != "Ignore"


_COUNTED = FailurePolicyResult()


def apply_failure_policy(pod: KubeObject, job: KubeObject) -> FailurePolicyResult:
    """Apply the first matching rule of the pod failure policy; a failure without a rule counts.

    Kubernetes: matchPodFailurePolicy.
    """
    policy = job["spec"].get("podFailurePolicy") or {}
    metadata = pod["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    for number, rule in enumerate(policy.get("rules") or ()):
        action = rule["action"]
        codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions")
        if codes is not None:
            container = _failed_container(pod, codes)
            if container is not None:
                code = container["state"]["terminated"]["exitCode"]
                event = f"Container {container['name']} for pod {name} failed with exit code {code}"
                return FailurePolicyResult(action, f"{event} matching {action} rule at index {number}")
        elif patterns:
            kind = _matching_condition(pod, patterns)
            if kind is not None:
                return FailurePolicyResult(
                    action, f"Pod {name} has condition {kind} matching {action} rule at index {number}"
                )
    return _COUNTED


def _failed_container(pod: KubeObject, requirement: KubeObject) -> KubeObject | None:
    status = pod.get("status", {})
    container_name = requirement.get("containerName")
    for container_status in [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]:
        terminated = container_status["state"].get("terminated")
        if not terminated or not terminated["exitCode"] or container_name not in (None, container_status["name"]):
            continue
        if (terminated["exitCode"] in requirement["values"]) == (requirement["operator"] == "In"):
            failed: KubeObject = container_status
            return failed
    return None


def _matching_condition(pod: KubeObject, patterns: Sequence[KubeObject]) -> str | None:
    for condition in pod.get("status", {}).get("conditions") or ():
        if any(
            condition["type"] == pattern["type"] and condition["status"] == pattern["status"] for pattern in patterns
        ):
            kind: str = condition["type"]
            return kind
    return None


def finished_at(pod: KubeObject) -> Instant:
    """Return when the pod finished: when its last container ended, or the best estimate from its status.

    Kubernetes: getFinishedTime.
    """
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    ends = [container["state"].get("terminated", {}).get("finishedAt") for container in statuses]
    if ends and all(ends):
        return instant_of(max(ends))
    ready = condition_of(pod, "Ready")
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return instant_of(ready["lastTransitionTime"])
    metadata = pod["metadata"]
    if is_being_deleted(pod):
        grace_ns = metadata.get("deletionGracePeriodSeconds", 0) * NANOSECONDS_PER_SECOND
        return Instant(instant_of(metadata["deletionTimestamp"]) - grace_ns)
    return instant_of(metadata["creationTimestamp"])


class BackoffRecord(NamedTuple):
    """Failures of a Job's pods since the last success, and the time of the latest one."""

    failures: int = 0
    last_failure: Instant | None = None

    def updated(self, succeeded: Iterable[KubeObject], failed: Iterable[KubeObject]) -> BackoffRecord:
        """Return the record after these pods have finished."""
        ends = sorted(finished_at(pod) for pod in failed)
        last_success = max((finished_at(pod) for pod in succeeded), default=None)
        if last_success is None:
            return BackoffRecord(self.failures + len(ends), ends[-1]) if ends else self
        later = [end for end in ends if end > last_success]
        return BackoffRecord(len(later), later[-1] if later else None)

    def remaining(self, now: Instant) -> Duration:
        """Return the remaining back-off delay: 10 s after the first failure, doubled by each further one."""
        if not self.failures or self.last_failure is None:
            return Duration(0)
        backoff = min(_FIRST_BACKOFF << min(self.failures - 1, 10), _MAX_BACKOFF)
        return Duration(max(0, self.last_failure + backoff - now))
