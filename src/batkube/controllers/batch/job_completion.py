"""Conditions that end a Job, in the order in which Kubernetes checks them.

Kubernetes: pkg/controller/job/job_controller.go, syncJob; success_policy.go.
"""

from __future__ import annotations

from batkube.cluster.object_meta import Condition
from batkube.cluster.pods.accessors import phase_of
from batkube.cluster.store import KubeObject
from batkube.controllers.batch.completion_indexes import parse_indexes
from batkube.controllers.batch.job_sync import JobSync, is_suspended, job_condition
from batkube.controllers.batch.pod_failures import apply_failure_policy, has_failed
from batkube.kernel.instants import Instant, bounded_seconds, instant_of


def early_end_condition(sync: JobSync, now: Instant) -> Condition | None:
    """Return the final condition that is already set, or that failures, the deadline or the success policy set now."""
    for kind in ("SuccessCriteriaMet", "FailureTarget"):
        interim = next(
            (condition for condition in sync.conditions if condition["type"] == kind and condition["status"] == "True"),
            None,
        )
        if interim is not None:
            return interim
    reason = _failure_reason(sync, now)
    if reason is not None:
        return job_condition("FailureTarget", "True", *reason, now)
    message = _success_policy_message(sync)
    return None if message is None else job_condition("SuccessCriteriaMet", "True", "SuccessPolicy", message, now)


def _failure_reason(sync: JobSync, now: Instant) -> tuple[str, str] | None:
    """Return reason and message of the Job's failure, or None."""
    spec = sync.spec
    if "podFailurePolicy" in spec:
        for pod in sync.pods:
            if has_failed(pod, sync.job):
                result = apply_failure_policy(pod, sync.job)
                if result.action == "FailJob":
                    return "PodFailurePolicy", result.message
    if sync.failed_count > spec.get("backoffLimit", 6) or _exceeds_restart_limit(sync):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if _is_past_deadline(sync, now):
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    if sync.has_backoff_limit_per_index:
        failed, succeeded = sync.failed_indexes.bit_count(), sync.succeeded_indexes.bit_count()
        max_failed = spec.get("maxFailedIndexes")
        if max_failed is not None and failed > max_failed:
            return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if failed and failed + succeeded >= (sync.completions or 0):
            return "FailedIndexes", "Job has failed indexes"
    return None


def _exceeds_restart_limit(sync: JobSync) -> bool:
    """Return whether containers restarted in place have exceeded backoffLimit, summed over all pods.

    Kubernetes: pastBackoffLimitOnFailure.
    """
    if sync.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        status["restartCount"]
        for pod in sync.pods
        if phase_of(pod) in ("Running", "Pending")
        for status in _all_statuses(pod)
    )
    limit = sync.spec.get("backoffLimit", 6)
    return bool(restarts > 0 if limit == 0 else restarts >= limit)


def _all_statuses(pod: KubeObject) -> list[KubeObject]:
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _is_past_deadline(sync: JobSync, now: Instant) -> bool:
    # Kubernetes: pastActiveDeadline.
    limit_s, since = sync.spec.get("activeDeadlineSeconds"), sync.status.get("startTime")
    if limit_s is None or since is None or is_suspended(sync.job):
        return False
    return now - instant_of(since) >= bounded_seconds(limit_s)


def _success_policy_message(sync: JobSync) -> str | None:
    """Return the message of the first matching rule of the success policy, or None (Kubernetes: matchSuccessPolicy)."""
    if not sync.is_indexed or not sync.succeeded_indexes:
        return None
    for number, rule in enumerate((sync.spec.get("successPolicy") or {}).get("rules") or ()):
        index_text, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        rule_indexes = None if index_text is None else parse_indexes(index_text, sync.completions or 0)
        if rule_indexes == 0:
            continue
        succeeded = sync.succeeded_indexes if rule_indexes is None else sync.succeeded_indexes & rule_indexes
        if (rule_indexes is not None and succeeded == rule_indexes) or (
            count is not None and succeeded.bit_count() >= count
        ):
            return f"Matched rules at index {number}"
    return None


def completion_condition(sync: JobSync, active: int, now: Instant) -> Condition | None:
    """Return the final condition of a Job with enough successful pods, or None."""
    is_complete = sync.succeeded_count > 0 if sync.completions is None else sync.succeeded_count >= sync.completions
    if not is_complete or active:
        return None
    message = "Reached expected number of succeeded pods"
    return job_condition("SuccessCriteriaMet", "True", "CompletionsReached", message, now)
