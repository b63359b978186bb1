"""Warnings about what makes pods from a template. Kubernetes: the strategies of pkg/registry/{apps,batch,core}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.checks.names import dns_label
from batkube.api.groups.core.pods.warnings import of_pod_spec
from batkube.api.groups.storage.warnings import of_claim_spec

#: From how many completions and how much parallelism on an indexed job cannot remember every failed index.
_MANY_COMPLETIONS = 100_000
_MUCH_PARALLELISM = 10_000
_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)
_NEGATIVE_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_TIME_ZONE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_TEMPLATE = "spec.template"
_CRON_TEMPLATE = "spec.jobTemplate.spec"

Value = Mapping[str, Any]


def _of(path: str, template: Value | None) -> list[str]:
    if template is None:
        return []
    return of_pod_spec(template.get("spec") or {}, template.get("metadata") or {}, f"{path}.")


def _of_name(value: Value) -> list[str]:
    wrong = dns_label(value["metadata"].get("name", ""))
    if not wrong:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        f"is recommended: [{' '.join(wrong)}]"
    ]


def _is_changed(value: Value, old: Value) -> bool:
    """Say whether a specification is another one, by its number."""
    return bool(value["metadata"].get("generation") != old["metadata"].get("generation"))


def of_template(value: Value) -> list[str]:
    """Warn of the pods that a new object will make."""
    return _of(_TEMPLATE, value["spec"].get("template"))


def of_named_template(value: Value) -> list[str]:
    """Warn of the pods that a new object will make, which bear its name."""
    return _of_name(value) + of_template(value)


def of_changed_template(value: Value, old: Value) -> list[str]:
    """Warn of the pods that a changed object will make."""
    return of_template(value) if _is_changed(value, old) else []


def of_changed_daemon_set(value: Value, old: Value) -> list[str]:
    """Daemon sets number their templates, not only their specifications."""
    return of_template(value) if value["spec"]["template"] != old["spec"]["template"] else []


def of_changed_controller(value: Value, old: Value) -> list[str]:
    """Warn as the real server does of replication controllers: of the template that was, not of the new one."""
    return of_template(old) if _is_changed(value, old) else []


def of_pod_template(value: Value) -> list[str]:
    """Warn of a pod template by itself."""
    return _of("template", value.get("template"))


def of_changed_pod_template(value: Value, old: Value) -> list[str]:
    """Warn of a changed pod template."""
    return of_pod_template(value) if _is_changed(value, old) else []


def _of_claims(value: Value, ending: str) -> list[str]:
    return [
        warning
        for index, claim in enumerate(value["spec"].get("volumeClaimTemplates") or ())
        for warning in of_claim_spec(f"spec.volumeClaimTemplates[{index}]{ending}", claim.get("spec") or {})
    ]


def _of_history(value: Value) -> list[str]:
    return [_NEGATIVE_HISTORY] if (value["spec"].get("revisionHistoryLimit") or 0) < 0 else []


def of_stateful_set(value: Value) -> list[str]:
    """Warn of a new stateful set, its pods and its claims."""
    return of_template(value) + _of_claims(value, "") + _of_history(value)


def of_changed_stateful_set(value: Value, old: Value) -> list[str]:
    """Warn of a changed stateful set; the real server misspells the path of its claims."""
    return of_changed_template(value, old) + _of_claims(value, ".Spec") + _of_history(value)


def _of_job_spec(path: str, spec: Value) -> list[str]:
    warnings = []
    many = spec.get("completions", 0) > _MANY_COMPLETIONS and spec.get("parallelism", 0) > _MUCH_PARALLELISM
    if spec.get("completionMode") == "Indexed" and many:
        warnings.append(f"{path}: {_MANY_INDEXES}")
    return warnings + _of(f"{path}.template", spec.get("template"))


def of_job(value: Value) -> list[str]:
    """Warn of a new job and its pods."""
    return _of_name(value) + _of_job_spec("spec", value["spec"])


def of_changed_job(value: Value, old: Value) -> list[str]:
    """Warn of a changed job."""
    return _of_job_spec("spec", value["spec"]) if _is_changed(value, old) else []


def of_cron_job(value: Value) -> list[str]:
    """Warn of a new cron job and its jobs."""
    return _of_name(value) + _of_job_spec(_CRON_TEMPLATE, value["spec"]["jobTemplate"].get("spec") or {})


def of_changed_cron_job(value: Value, old: Value) -> list[str]:
    """Warn of a changed cron job; one that had a time zone in its schedule may keep it."""
    warnings = []
    if _is_changed(value, old):
        warnings = _of_job_spec(_CRON_TEMPLATE, value["spec"]["jobTemplate"].get("spec") or {})
    return warnings + ([_TIME_ZONE] if "TZ" in value["spec"].get("schedule", "") else [])
