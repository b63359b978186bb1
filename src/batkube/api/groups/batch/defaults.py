"""Defaults of Jobs and CronJobs. Kubernetes: pkg/apis/batch/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.pods.defaults import set_template_defaults
from batkube.api.groups.kind_model.defaults import Defaults, ensure_struct, fill_absent, fill_empty, list_items

_JOB: Defaults = {"parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False}
_CRON_JOB: Defaults = {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
_BACKOFF_LIMIT = 6
#: The backoffLimit of a job with backoffLimitPerIndex: unlimited for the job as a whole.
_NO_BACKOFF_LIMIT = 2**31 - 1


def set_job_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of completions, parallelism and backoffLimit, and of labels (the template's).

    As in kube-apiserver, the job and its template then share one map of labels: labels that the strategy adds to the
    template appear in both.
    """
    spec = ensure_struct(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill_absent(spec, _JOB)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = _BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else _NO_BACKOFF_LIMIT
    if spec.get("podReplacementPolicy") is None:
        replaces_failed = spec.get("podFailurePolicy") is not None
        spec["podReplacementPolicy"] = "Failed" if replaces_failed else "TerminatingOrFailed"
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = ensure_struct(obj, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels
    _set_job_template_defaults(spec)


def set_cron_job_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of concurrency policy and history limits."""
    spec = ensure_struct(obj, "spec")
    fill_empty(spec, {"concurrencyPolicy": "Allow"})
    fill_absent(spec, _CRON_JOB)
    _set_job_template_defaults(ensure_struct(ensure_struct(spec, "jobTemplate"), "spec"))


def _set_job_template_defaults(spec: dict[str, Any]) -> None:
    for rule in list_items(spec.get("podFailurePolicy") or {}, "rules"):
        for pattern in list_items(rule, "onPodConditions"):
            fill_empty(pattern, {"status": "True"})
    set_template_defaults(spec.get("template"))
