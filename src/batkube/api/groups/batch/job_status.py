"""Validation of a Job's status: the counts and conditions must be consistent.

Each rule checks a status only if the fields that it concerns have changed, so that an inconsistent old status never
blocks an update.

Kubernetes: pkg/apis/batch/validation (validateJobStatus, ValidateJobStatusUpdate) and pkg/registry/batch/job
(getStatusValidationOptions, with the gate JobManagedBy on).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from batkube.api.groups.batch.job_policies import BadIndexes, parse_indexes, parse_interval
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.problems import IMMUTABLE, OMITTED, Problems
from batkube.api.validation.rules import Object

Status = Mapping[str, Any]
_CONDITIONS = "status.conditions"


class _Conditions:
    """The conditions of a job that are True."""

    def __init__(self, status: Status) -> None:
        true = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
        self.complete, self.failed = "Complete" in true, "Failed" in true
        self.failing, self.succeeded = "FailureTarget" in true, "SuccessCriteriaMet" in true
        self.suspended = "Suspended" in true
        self.finished = self.complete or self.failed
        false = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "False"}
        self.resumed = "Suspended" in false


class _StatusUpdate:
    """A job before and after a status update."""

    def __init__(self, new: Object, old: Object) -> None:
        self.spec: Status = new.get("spec", {})
        self.status: Status = new.get("status", {})
        self.old_status: Status = old.get("status", {})
        self.conditions, self.old_conditions = _Conditions(self.status), _Conditions(self.old_status)

    def fields_changed(self, *fields: str) -> bool:
        """Return whether one of these status fields has changed."""
        return any(self.status.get(field) != self.old_status.get(field) for field in fields)

    def conditions_changed(self, *conditions: str) -> bool:
        """Return whether one of these conditions has changed."""
        return any(getattr(self.conditions, name) != getattr(self.old_conditions, name) for name in conditions)


def check_job_status(new: Object, old: Object, problems: Problems) -> None:
    """Check a job's new status, by itself and against the old one."""
    step = _StatusUpdate(new, old)
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        problems.not_negative(f"status.{field}", step.status.get(field) or 0)
    _check_uncounted(step.status.get("uncountedTerminatedPods") or {}, problems)
    _check_end_conditions(step, problems)
    _check_finished(step, problems)
    _check_indexes(step, problems)
    _check_pods(step, problems)
    for detail in _contradicting_conditions(step):
        problems.invalid(_CONDITIONS, OMITTED, detail)
    _check_transition(step, problems)


def _check_uncounted(pods: Status, problems: Problems) -> None:
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                problems.invalid(path, uid, "must not be empty")
            elif uid in seen:
                problems.duplicate(path, uid)
            seen.add(uid)


def _check_end_conditions(step: _StatusUpdate, problems: Problems) -> None:
    has, start, end = step.conditions, step.status.get("startTime"), step.status.get("completionTime")
    if has.complete and has.failed and step.conditions_changed("complete", "failed"):
        problems.invalid(_CONDITIONS, OMITTED, "cannot set Complete=True and Failed=true conditions")
    if has.complete and has.failing and step.conditions_changed("complete", "failing"):
        problems.invalid(_CONDITIONS, OMITTED, "cannot set Complete=True and FailureTarget=true conditions")
    if step.conditions_changed("complete") or step.fields_changed("completionTime"):
        if end is not None and not has.complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            problems.invalid("status.completionTime", end, detail)
        if end is None and has.complete:
            problems.required("status.completionTime", "completionTime is required for Complete jobs")
    if start and end and end < start and step.fields_changed("startTime", "completionTime"):
        problems.invalid("status.completionTime", end, "must be equal to or after `startTime`")
    if has.failed and not has.failing and (step.conditions_changed("failed") or step.fields_changed("failedIndexes")):
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        problems.invalid(_CONDITIONS, OMITTED, detail)
    if has.complete and not has.succeeded and step.conditions_changed("complete", "succeeded"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        problems.invalid(_CONDITIONS, OMITTED, detail)


def _check_finished(step: _StatusUpdate, problems: Problems) -> None:
    if not step.conditions.finished:
        return
    turned = step.conditions_changed("finished")
    if (active := step.status.get("active", 0)) > 0 and (turned or step.fields_changed("active")):
        problems.invalid("status.active", active, "active>0 is invalid for finished job")
    empty = step.spec.get("suspend") is True and step.spec.get("completions") == 0
    if step.status.get("startTime") is None and (turned or step.fields_changed("startTime")) and not empty:
        problems.required("status.startTime", "startTime is required for finished job")
    uncounted = step.status.get("uncountedTerminatedPods") or {}
    if any(uncounted.values()) and (turned or step.fields_changed("uncountedTerminatedPods")):
        go_text = go_struct("batch.UncountedTerminatedPods", uncounted)
        problems.invalid("status.uncountedTerminatedPods", go_text, "must be empty for finished job")


def _check_indexes(step: _StatusUpdate, problems: Problems) -> None:
    done, failed = step.status.get("completedIndexes", ""), step.status.get("failedIndexes")
    completions, backoff = step.spec.get("completions"), step.spec.get("backoffLimitPerIndex")
    done_changed, failed_changed = step.fields_changed("completedIndexes"), step.fields_changed("failedIndexes")
    if done_changed and completions is not None:
        _check_format("completedIndexes", done, completions, problems)
    if failed_changed and completions is not None and backoff is not None and failed is not None:
        _check_format("failedIndexes", failed, completions, problems)
    if done_changed and done and step.spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        problems.invalid("status.completedIndexes", done, detail)
    if failed_changed and backoff is None and failed is not None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        problems.invalid("status.failedIndexes", failed, detail)
    if (done_changed or failed_changed) and completions is not None and failed is not None:
        overlap = _first_overlap(done, failed, completions)
        if overlap is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {overlap}"
            problems.invalid("status.failedIndexes", failed, detail)


def _check_format(field: str, text: str, completions: int, problems: Problems) -> None:
    try:
        parse_indexes(text, completions)
    except BadIndexes as wrong:
        problems.invalid(f"status.{field}", text, f"error parsing {field}: {wrong}")


def _first_overlap(done: str, failed: str, completions: int) -> int | None:
    overlaps = [
        max(first, other_first)
        for first, last in _parsed_intervals(done, completions)
        for other_first, other_last in _parsed_intervals(failed, completions)
        if first <= other_last and other_first <= last
    ]
    return min(overlaps, default=None)


def _parsed_intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(",") if text else ():
        try:
            yield parse_interval(part, completions)
        except BadIndexes:
            continue


def _check_pods(step: _StatusUpdate, problems: Problems) -> None:
    ending, ready = step.status.get("terminating") or 0, step.status.get("ready")
    if (
        ending > 0
        and step.conditions.finished
        and (step.conditions_changed("finished") or step.fields_changed("terminating"))
    ):
        problems.invalid("status.terminating", ending, "terminating>0 is invalid for finished job")
    if ready is not None and ready > step.status.get("active", 0) and step.fields_changed("ready", "active"):
        problems.invalid("status.ready", ready, "cannot set more ready pods than active")


def _contradicting_conditions(step: _StatusUpdate) -> Iterator[str]:
    new = step.conditions
    if new.succeeded and new.failed:
        yield "cannot set SuccessCriteriaMet=True and Failed=true conditions"
    if new.succeeded and new.failing:
        yield "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
    if step.spec.get("successPolicy") is not None and new.complete and not new.succeeded:
        yield "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"


def _check_transition(step: _StatusUpdate, problems: Problems) -> None:
    now, before, new, old = step.status, step.old_status, step.conditions, step.old_conditions
    for name, was_set, is_set in (
        ("Failed", old.failed, new.failed),
        ("Complete", old.complete, new.complete),
        ("FailureTarget", old.failing, new.failing),
    ):
        if was_set and not is_set:
            problems.invalid(_CONDITIONS, OMITTED, f"cannot disable the terminal {name}=True condition")
    if (count := now.get("failed", 0)) < before.get("failed", 0):
        problems.invalid("status.failed", count, "cannot decrease the failed counter")
    elastic = step.spec.get("completionMode") == "Indexed" and (
        step.spec.get("completions") == step.spec.get("parallelism")
    )
    if (count := now.get("succeeded", 0)) < before.get("succeeded", 0) and not elastic:
        problems.invalid("status.succeeded", count, "cannot decrease the succeeded counter")
    ends = now.get("completionTime"), before.get("completionTime")
    if None not in ends and ends[0] != ends[1]:
        problems.invalid("status.completionTime", ends[0], IMMUTABLE)
    moved = before.get("startTime") is not None and step.fields_changed("startTime")
    if moved and not (old.suspended and new.resumed) and not step.spec.get("suspend"):
        problems.required("status.startTime", "startTime cannot be removed for unsuspended job")
    if old.succeeded and not new.succeeded:
        problems.invalid(_CONDITIONS, OMITTED, "cannot disable the SuccessCriteriaMet=True condition")
    if old.complete and not old.succeeded and new.succeeded:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        problems.invalid(_CONDITIONS, OMITTED, detail)
