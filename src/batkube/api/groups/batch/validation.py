"""Validation of Jobs and CronJobs (Kubernetes: pkg/apis/batch/validation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.apps.validation import check_selector_unchanged, check_template_labels
from batkube.api.groups.batch.cron_schedules import check_schedule, check_zone
from batkube.api.groups.batch.job_policies import check_failure_policy, check_success_policy
from batkube.api.groups.batch.job_status import check_job_status
from batkube.api.groups.core.pods.validation.spec import check_template
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_domain_prefixed_path, check_selector
from batkube.api.validation.names import byte_length, dns_label, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import Object, ValidationRules, no_further_checks, validate_metadata_update
from batkube.cluster.selectors import SelectorError, selector_of

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_LEGACY_LABELS = ("controller-uid", "job-name")
_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_MANY_COMPLETIONS = 100_000
_FAILURES_MAX_FOR_MANY = 10_000
_CONCURRENCY = ("Allow", "Forbid", "Replace")
#: The immutable fields in the order of the checks, with the Go types of messages.
_IMMUTABLE_FIELDS = (
    ("completionMode", "*string"),
    ("podFailurePolicy", "*batch.PodFailurePolicy"),
    ("backoffLimitPerIndex", "*int32"),
    ("managedBy", "*string"),
    ("successPolicy", "*batch.SuccessPolicy"),
)


def _validate_job_create(job: Object, problems: Problems, *, prefixed: bool = True) -> None:
    meta, spec = job["metadata"], job.get("spec", {})
    check_built_in_metadata(meta, subdomain_name, True, problems)
    if not spec.get("manualSelector") and spec.get("selector") is not None:
        _check_generated_selector(meta, spec, problems, prefixed)
    _check_template_selected(spec, problems)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        host = f"{meta.get('name', '')}-{spec['completions'] - 1}"
        if dns_label(host):
            detail = f"will not able to create pod with invalid DNS label: {host}"
            problems.invalid("metadata.name", meta.get("name", ""), detail)


def _check_generated_selector(
    meta: Mapping[str, Any], spec: Mapping[str, Any], problems: Problems, prefixed: bool
) -> None:
    """Check that the generated selector and labels are present and unmodified."""
    labels = spec.get("template", {}).get("metadata", {}).get("labels") or {}
    identity = (meta.get("uid", ""), meta.get("name", ""))
    expected: dict[str, str] = {}
    for keys in (_LEGACY_LABELS, _LABELS) if prefixed else (_LEGACY_LABELS,):
        for key, value in zip(keys, identity, strict=True):
            expected[key] = value
            if key not in labels:
                problems.required(f"spec.template.metadata.labels[{key}]", f"must be '{value}'")
            elif labels[key] != value:
                problems.invalid(f"spec.template.metadata.labels[{key}]", labels, f"must be '{value}'")
    try:
        matches = selector_of(spec["selector"]).matches(expected)
    except SelectorError:
        return
    if not matches:
        go_text = go_struct("meta.LabelSelector", spec["selector"])
        problems.invalid("spec.selector", go_text, "`selector` not auto-generated")


def _check_template_selected(spec: Mapping[str, Any], problems: Problems) -> None:
    _check_spec(spec, "spec", problems)
    selector = spec.get("selector")
    if selector is None:
        problems.required("spec.selector")
    else:
        check_selector(selector, "spec.selector", problems)
    check_template_labels(selector, spec.get("template", {}), "spec.template", problems)


def _check_spec(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    for field in _COUNTS:
        problems.not_negative(f"{path}.{field}", spec.get(field, 0))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        problems.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if (manager := spec.get("managedBy")) is not None:
        check_domain_prefixed_path(manager, f"{path}.managedBy", problems)
        if byte_length(manager) > 63:
            problems.too_long(f"{path}.managedBy", 63)
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        problems.not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        _check_indexed(spec, path, problems)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if (count := spec.get(field)) is not None:
                problems.invalid(f"{path}.{field}", count, "requires indexed completion mode")
    _check_policies(spec, path, problems)
    check_template(spec.get("template", {}), f"{path}.template", problems)
    _check_restart_policy(spec, f"{path}.template.spec.restartPolicy", problems)


def _check_indexed(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        problems.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MANY_COMPLETIONS:
        detail = f"must be less than or equal to {_MANY_COMPLETIONS} when completion mode is Indexed"
        problems.invalid(f"{path}.parallelism", parallelism, detail)
    if completions is not None and failed is not None and failed > completions:
        problems.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MANY_COMPLETIONS:
        problems.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MANY_COMPLETIONS}")
    if completions is None or completions <= _MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return
    detail = (
        f"must be less than or equal to {_FAILURES_MAX_FOR_MANY} when completions are above {_MANY_COMPLETIONS} "
        "and used with backoff limit per index"
    )
    if failed is None:
        problems.required(
            f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MANY_COMPLETIONS}"
        )
    if parallelism is not None and parallelism > _FAILURES_MAX_FOR_MANY:
        problems.invalid(f"{path}.parallelism", parallelism, detail)
    if failed is not None and failed > _FAILURES_MAX_FOR_MANY:
        problems.invalid(f"{path}.maxFailedIndexes", failed, detail)


def _check_policies(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        check_failure_policy(failure, spec, f"{path}.podFailurePolicy", problems)
    if success is not None:
        if spec.get("completionMode") != "Indexed":
            go_text = go_struct("batch.SuccessPolicy", success)
            problems.invalid(f"{path}.successPolicy", go_text, "requires indexed completion mode")
        else:
            check_success_policy(success, spec.get("completions") or 0, f"{path}.successPolicy", problems)
    if (replacement := spec.get("podReplacementPolicy")) is not None:
        allowed = ("Failed",) if failure is not None else ("Failed", "TerminatingOrFailed")
        if replacement not in allowed:
            problems.not_supported(f"{path}.podReplacementPolicy", replacement, allowed)


def _check_restart_policy(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        problems.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        problems.not_supported(path, policy, ("OnFailure", "Never"))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        problems.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _validate_job_update(new: Object, old: Object, problems: Problems) -> None:
    spec, before = new["spec"], old["spec"]
    labels = before.get("template", {}).get("metadata", {}).get("labels") or {}
    _validate_job_create(new, problems, prefixed=all(label in labels for label in _LABELS))
    validate_metadata_update(new, old, problems)
    _check_template_selected(spec, problems)
    _check_completions(spec, before, problems)
    check_selector_unchanged(new, old, problems)
    _check_template_change(spec, old, problems)
    for field, kind in _IMMUTABLE_FIELDS:
        if spec.get(field) != before.get(field):
            problems.invalid(f"spec.{field}", go_struct(kind, spec.get(field)), IMMUTABLE)


def _check_completions(spec: Mapping[str, Any], before: Mapping[str, Any], problems: Problems) -> None:
    count = spec.get("completions")
    if count == before.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        problems.invalid("spec.completions", count, IMMUTABLE)
    elif count is not None and count != spec.get("parallelism"):
        problems.invalid("spec.completions", count, "can only be modified in tandem with spec.parallelism")


def _check_template_change(spec: Mapping[str, Any], old: Object, problems: Problems) -> None:
    template, before = spec.get("template", {}), old["spec"].get("template", {})
    if old["spec"].get("suspend") and old.get("status", {}).get("startTime") is None:
        before = _with_mutable_scheduling(template, before)
    if _without_nulls(template) != _without_nulls(before):
        problems.invalid("spec.template", go_struct("core.PodTemplateSpec", template), IMMUTABLE)


def _with_mutable_scheduling(template: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the old template with the new scheduling directives, mutable in a suspended job without startTime."""
    now, then = template.get("spec", {}), before.get("spec", {})
    spec = {**then, **{field: now.get(field) for field in ("nodeSelector", "tolerations", "schedulingGates")}}
    affinity, earlier = now.get("affinity"), then.get("affinity")
    if affinity is not None or earlier is not None:
        new_affinity = {**(earlier or {}), "nodeAffinity": (affinity or {}).get("nodeAffinity")}
        spec["affinity"] = new_affinity if affinity is not None or any(new_affinity.values()) else None
    meta = {**before.get("metadata", {})}
    for field in ("labels", "annotations"):
        meta[field] = template.get("metadata", {}).get(field)
    return {**before, "metadata": meta, "spec": spec}


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the object without nulls, which are equivalent to unset fields."""
    if not isinstance(value, Mapping):
        return value
    return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}


def _validate_job_status_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    check_job_status(new, old, problems)


def _check_cron_spec(spec: Mapping[str, Any], before: Mapping[str, Any] | None, problems: Problems) -> None:
    zone, earlier = spec.get("timeZone"), (before or {}).get("schedule")
    check_schedule(spec.get("schedule", ""), "spec.schedule", problems, zone, earlier)
    problems.not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds", 0))
    if zone is not None and (before is None or before.get("timeZone") != zone):
        check_zone(zone, "spec.timeZone", problems)
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        problems.required("spec.concurrencyPolicy")
    elif policy not in _CONCURRENCY:
        problems.not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY)
    job, path = spec.get("jobTemplate", {}).get("spec", {}), "spec.jobTemplate.spec"
    _check_spec(job, path, problems)
    if (selector := job.get("selector")) is not None:
        go_text = go_struct("meta.LabelSelector", selector)
        problems.invalid(f"{path}.selector", go_text, "`selector` will be auto-generated")
    if job.get("manualSelector"):
        problems.not_supported(f"{path}.manualSelector", True, ("nil", "false"))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        problems.not_negative(f"spec.{field}", spec.get(field, 0))


def _validate_cron_job_create(value: Object, problems: Problems) -> None:
    meta = value["metadata"]
    check_built_in_metadata(meta, subdomain_name, True, problems)
    _check_cron_spec(value.get("spec", {}), None, problems)
    # The controller appends a dash and ten digits to name a job, whose name has at most 63 characters.
    if byte_length(meta.get("name", "")) > 52:
        problems.invalid("metadata.name", meta["name"], "must be no more than 52 characters")


def _validate_cron_job_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_cron_spec(new.get("spec", {}), old.get("spec", {}), problems)


CRON_JOB_RULES = ValidationRules(_validate_cron_job_create, _validate_cron_job_update, no_further_checks)
JOB_RULES = ValidationRules(_validate_job_create, _validate_job_update, _validate_job_status_update)
