"""Warnings about what makes pods from a template. Kubernetes: the strategies of pkg/registry/{apps,core}."""

from __future__ import annotations

from batkube.api.groups.core.pods.warnings import Value, is_changed, of_one_template
from batkube.api.groups.core.volumes.warnings import of_claim_spec
from batkube.api.validation.names import dns_label

_NEGATIVE_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_TEMPLATE = "spec.template"


def of_name(value: Value) -> list[str]:
    """Warn of a name that its pods can bear only with surprises."""
    wrong = dns_label(value["metadata"].get("name", ""))
    if not wrong:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        f"is recommended: [{' '.join(wrong)}]"
    ]


def of_template(value: Value) -> list[str]:
    """Warn of the pods that a new object will make."""
    return of_one_template(_TEMPLATE, value["spec"].get("template"))


def of_named_template(value: Value) -> list[str]:
    """Warn of the pods that a new object will make, which bear its name."""
    return of_name(value) + of_template(value)


def of_changed_template(value: Value, old: Value) -> list[str]:
    """Warn of the pods that a changed object will make."""
    return of_template(value) if is_changed(value, old) else []


def of_changed_daemon_set(value: Value, old: Value) -> list[str]:
    """Daemon sets number their templates, not only their specifications."""
    return of_template(value) if value["spec"]["template"] != old["spec"]["template"] else []


def of_changed_controller(value: Value, old: Value) -> list[str]:
    """Warn as the real server does of replication controllers: of the template that was, not of the new one."""
    return of_template(old) if is_changed(value, old) else []


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
