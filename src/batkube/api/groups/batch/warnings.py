"""Warnings about Jobs and CronJobs. Kubernetes: pkg/registry/batch."""

from __future__ import annotations

from batkube.api.groups.apps.warnings import name_warnings
from batkube.api.groups.core.pods.warnings import Value, is_generation_changed, pod_template_spec_warnings

#: Above this number of completions and parallelism, an indexed job may lose failed indexes.
_MANY_COMPLETIONS = 100_000
_MUCH_PARALLELISM = 10_000
_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)
_TIME_ZONE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_CRON_TEMPLATE = "spec.jobTemplate.spec"


def _job_spec_warnings(path: str, spec: Value) -> list[str]:
    warnings = []
    many = spec.get("completions", 0) > _MANY_COMPLETIONS and spec.get("parallelism", 0) > _MUCH_PARALLELISM
    if spec.get("completionMode") == "Indexed" and many:
        warnings.append(f"{path}: {_MANY_INDEXES}")
    return warnings + pod_template_spec_warnings(f"{path}.template", spec.get("template"))


def job_warnings(value: Value) -> list[str]:
    """Return the warnings about a new job and its pod template."""
    return name_warnings(value) + _job_spec_warnings("spec", value["spec"])


def job_update_warnings(value: Value, old: Value) -> list[str]:
    """Return the warnings about an updated job."""
    return _job_spec_warnings("spec", value["spec"]) if is_generation_changed(value, old) else []


def cron_job_warnings(value: Value) -> list[str]:
    """Return the warnings about a new CronJob and its job template."""
    return name_warnings(value) + _job_spec_warnings(_CRON_TEMPLATE, value["spec"]["jobTemplate"].get("spec") or {})


def cron_job_update_warnings(value: Value, old: Value) -> list[str]:
    """Return the warnings about an updated CronJob; an old schedule may keep its time zone."""
    warnings = []
    if is_generation_changed(value, old):
        warnings = _job_spec_warnings(_CRON_TEMPLATE, value["spec"]["jobTemplate"].get("spec") or {})
    return warnings + ([_TIME_ZONE] if "TZ" in value["spec"].get("schedule", "") else [])
