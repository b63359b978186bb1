"""Cells of Jobs and CronJobs (Kubernetes: pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.printing.ages import age, time_between, time_since
from batkube.api.printing.cell_texts import NONE, container_cells, format_bool, format_selector_or_none
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: The texts for a job's status: the first condition that is true wins; a deletion ranks between the two groups.
_JOB_ENDS = ("Complete", "Failed")
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def job_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Job."""
    spec, status = value.get("spec", {}), value.get("status", {})
    return [
        value["metadata"].get("name", ""),
        _job_status(value, status.get("conditions") or ()),
        _completions(spec, status.get("succeeded", 0)),
        _job_duration(status, now),
        age(value, now),
        *container_cells(spec.get("template")),
        format_selector_or_none(spec.get("selector")),
    ]


def _job_status(value: KubeObject, conditions: Sequence[Mapping[str, Any]]) -> str:
    # The first condition of a type counts (Kubernetes: hasJobCondition).
    first: dict[str, Any] = {}
    for condition in conditions:
        first.setdefault(condition.get("type", ""), condition.get("status"))
    for word in _JOB_ENDS:
        if first.get(word) == "True":
            return word
    if value["metadata"].get("deletionTimestamp") is not None:
        return "Terminating"
    return next((word for word in _JOB_STATES if first.get(word) == "True"), "Running")


def _completions(spec: Mapping[str, Any], succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Mapping[str, Any], now: Instant) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if start is None:
        return ""
    return time_since(start, now) if end is None else time_between(start, end)


def cron_job_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a CronJob."""
    spec, status = value.get("spec", {}), value.get("status", {})
    job = spec.get("jobTemplate", {}).get("spec", {})
    last = status.get("lastScheduleTime")
    return [
        value["metadata"].get("name", ""),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        format_bool(spec.get("suspend")),
        len(status.get("active") or ()),
        NONE if last is None else time_since(last, now),
        age(value, now),
        *container_cells(job.get("template")),
        format_selector_or_none(job.get("selector")),
    ]
