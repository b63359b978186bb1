"""What the failure of a Job's pod means: whether it counts, when it happened, and how long to wait after it.

Kubernetes: pkg/controller/job, pod_failure_policy.go and backoff_utils.go.
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
    """Return whether a pod is replaced only once it has failed, and not already while it is being stopped."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def has_failed(pod: KubeObject, job: KubeObject) -> bool:
    """Return whether the pod counts as failed; a deleted one does, as it may never get the chance to."""
    phase = phase_of(pod)
    if phase == "Failed":
        return True
    return not replaces_only_failed(job) and is_being_deleted(pod) and phase != "Succeeded"


class FailurePolicyResult(NamedTuple):
    """What the Job's failure policy says of a failed pod."""

    action: str = "Count"
    #: Of action FailJob: why the Job fails.
    message: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether the failure counts towards the limits."""
        return self.action != "Ignore"


_COUNTED = FailurePolicyResult()


def apply_failure_policy(pod: KubeObject, job: KubeObject) -> FailurePolicyResult:
    """Return what the first rule of the failure policy that matches says; a failure without a rule counts."""
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
    wanted = requirement.get("containerName")
    for one in [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]:
        terminated = one["state"].get("terminated")
        if not terminated or not terminated["exitCode"] or wanted not in (None, one["name"]):
            continue
        if (terminated["exitCode"] in requirement["values"]) == (requirement["operator"] == "In"):
            failed: KubeObject = one
            return failed
    return None


def _matching_condition(pod: KubeObject, patterns: Sequence[KubeObject]) -> str | None:
    for condition in pod.get("status", {}).get("conditions") or ():
        if any(condition["type"] == one["type"] and condition["status"] == one["status"] for one in patterns):
            kind: str = condition["type"]
            return kind
    return None


def finished_at(pod: KubeObject) -> Instant:
    """Return when the pod ended: its last container, or else the best that its status tells."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    ends = [one["state"].get("terminated", {}).get("finishedAt") for one in statuses]
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
    """How many pods of a Job failed since the last that succeeded, and when the latest did."""

    failures: int = 0
    last_failure: Instant | None = None

    def updated(self, succeeded: Iterable[KubeObject], failed: Iterable[KubeObject]) -> BackoffRecord:
        """Return the failures when these pods have ended since."""
        ends = sorted(finished_at(pod) for pod in failed)
        last_success = max((finished_at(pod) for pod in succeeded), default=None)
        if last_success is None:
            return BackoffRecord(self.failures + len(ends), ends[-1]) if ends else self
        later = [end for end in ends if end > last_success]
        return BackoffRecord(len(later), later[-1] if later else None)

    def remaining(self, now: Instant) -> Duration:
        """Return how long to wait before the next pod: 10 s after a failure, twice as long after each more."""
        if not self.failures or self.last_failure is None:
            return Duration(0)
        pause = min(_FIRST_BACKOFF << min(self.failures - 1, 10), _MAX_BACKOFF)
        return Duration(max(0, self.last_failure + pause - now))
