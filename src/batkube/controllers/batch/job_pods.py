"""Calculates which pods of a Job to create or delete.

Kubernetes: pkg/controller/job/job_controller.go, manageJob; indexed_job_utils.go.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.controllers.batch.completion_indexes import INDEX, first_missing, index_of
from batkube.controllers.batch.job_sync import FINALIZER, JobSync, failures_of_index, inherited_failures, is_suspended
from batkube.controllers.batch.pod_failures import BackoffRecord, finished_at, replaces_only_failed
from batkube.controllers.framework.deletion_order import by_readiness
from batkube.kernel.instants import Duration, Instant

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
#: Maximum length of a name prefix, before five random letters are added (apiserver: pkg/storage/names/generate.go).
_PREFIX_LENGTH = 58


class PodPlan(NamedTuple):
    """Pods to create now (template and name prefix of each), or how long to wait before creating any."""

    templates: list[tuple[KubeObject, str]]
    wait: Duration = Duration(0)


def _desired_active(sync: JobSync) -> int:
    """Return the desired number of active pods (Kubernetes: manageJob, wantActive)."""
    if is_suspended(sync.job):
        return 0
    parallelism: int = sync.spec.get("parallelism", 1)
    if sync.completions is None:
        return len(sync.active) if sync.succeeded_count > 0 else parallelism
    missing: int = sync.completions - sync.succeeded_count
    return max(0, min(parallelism, missing))


def pods_to_delete(sync: JobSync) -> list[KubeObject]:
    """Return the surplus active pods: duplicate and invalid indexes first, then the least advanced.

    Kubernetes: activePodsForRemoval.
    """
    count = len(sync.active) - _desired_active(sync)
    invalid, others = _split_duplicates(sync) if sync.is_indexed else ([], sync.active)
    if len(invalid) < count:
        return [*invalid, *by_readiness(others)[: count - len(invalid)]]
    return invalid


def _split_duplicates(sync: JobSync) -> tuple[list[KubeObject], list[KubeObject]]:
    """Return the pods with an invalid or duplicate index, and the others; the most advanced pod of an index stays.

    Kubernetes: appendDuplicatedIndexPodsForRemoval.
    """
    by_index: dict[int, list[KubeObject]] = {}
    removed = []
    for pod in sync.active:
        index = index_of(pod)
        if index is None or index >= (sync.completions or 0):
            removed.append(pod)
        else:
            by_index.setdefault(index, []).append(pod)
    remaining = []
    for pods in by_index.values():
        *extra, best = by_readiness(pods)
        removed += extra
        remaining.append(best)
    return removed, remaining


def plan_creations(sync: JobSync, failures: BackoffRecord, now: Instant) -> PodPlan:
    """Return the missing pods, unless a back-off delay has not passed yet."""
    terminating = sync.terminating if replaces_only_failed(sync.job) else 0
    missing = _desired_active(sync) - len(sync.active) - terminating
    if missing <= 0:
        return PodPlan([])
    if not sync.has_backoff_limit_per_index:
        wait = failures.remaining(now)
        if wait:
            return PodPlan([], wait)
    template = _template(sync.job)
    if not sync.is_indexed:
        return PodPlan([(template, "")] * missing)
    indexes = first_missing(sync.occupied_indexes(), missing, sync.completions or 0)
    if sync.has_backoff_limit_per_index:
        waits = {index: _backoff_of_index(sync, index, now) for index in indexes}
        indexes = [index for index, wait in waits.items() if not wait]
        if not indexes:
            return PodPlan([], min(waits.values(), default=Duration(0)))
    return PodPlan([_indexed_template(sync, template, index) for index in indexes])


def _backoff_of_index(sync: JobSync, index: int, now: Instant) -> Duration:
    last_failed = sync.delayed_deletion_by_index.get(index)
    if last_failed is None:
        return Duration(0)
    return BackoffRecord(failures_of_index(last_failed) + 1, finished_at(last_failed)).remaining(now)


def _template(job: KubeObject) -> KubeObject:
    template = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    finalizers = [*metadata.get("finalizers", ())]
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    return {**template, "metadata": {**metadata, "finalizers": finalizers}}


def _indexed_template(sync: JobSync, template: KubeObject, index: int) -> tuple[KubeObject, str]:
    """Return the template of the pod of one index: annotation, label, host name and variable contain the index.

    Kubernetes: addCompletionIndexAnnotation.
    """
    name, spec, metadata = sync.job["metadata"]["name"], template["spec"], template["metadata"]
    annotations = {**(metadata.get("annotations") or {}), INDEX: str(index)}
    if sync.has_backoff_limit_per_index:
        annotations |= inherited_failures(sync.delayed_deletion_by_index.get(index), sync.job)
    labels = {**(metadata.get("labels") or {}), INDEX: str(index)}
    containers = {
        field: [_with_index_variable(container) for container in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    indexed = {
        **template,
        "metadata": {**metadata, "annotations": annotations, "labels": labels},
        "spec": {**spec, **containers, "hostname": f"{name}-{index}"},
    }
    suffix = f"-{index}-"
    prefix = f"{name}{suffix}"
    return indexed, prefix if len(prefix) <= _PREFIX_LENGTH else f"{prefix[: _PREFIX_LENGTH - len(suffix)]}{suffix}"


def _with_index_variable(container: KubeObject) -> KubeObject:
    variables = container.get("env") or []
    if any(variable["name"] == _INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": _INDEX_VARIABLE, "valueFrom": source}]}
