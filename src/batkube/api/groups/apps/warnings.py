"""Warnings about what makes pods from a template. Kubernetes: the strategies of pkg/registry/{apps,core}."""

from __future__ import annotations

from batkube.api.groups.core.pods.warnings import Value, is_generation_changed, pod_template_spec_warnings
from batkube.api.groups.core.volumes.warnings import claim_spec_warnings
from batkube.api.validation.names import dns_label

_NEGATIVE_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_TEMPLATE = "spec.template"


def name_warnings(value: Value) -> list[str]:
    """Warn of a name that its pods can bear only with surprises."""
    wrong = dns_label(value["metadata"].get("name", ""))
    if not wrong:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        f"is recommended: [{' '.join(wrong)}]"
    ]


def template_warnings(value: Value) -> list[str]:
    """Warn of the pods that a new object will make."""
    return pod_template_spec_warnings(_TEMPLATE, value["spec"].get("template"))


def named_template_warnings(value: Value) -> list[str]:
    """Warn of the pods that a new object will make, which bear its name."""
    return name_warnings(value) + template_warnings(value)


def template_update_warnings(value: Value, old: Value) -> list[str]:
    """Warn of the pods that a changed object will make."""
    return template_warnings(value) if is_generation_changed(value, old) else []


def daemon_set_update_warnings(value: Value, old: Value) -> list[str]:
    """Daemon sets number their templates, not only their specifications."""
    return template_warnings(value) if value["spec"]["template"] != old["spec"]["template"] else []


def replication_controller_update_warnings(value: Value, old: Value) -> list[str]:
    """Warn as the real server does of replication controllers: of the template that was, not of the new one."""
    return template_warnings(old) if is_generation_changed(value, old) else []


def _claim_template_warnings(value: Value, ending: str) -> list[str]:
    return [
        warning
        for index, claim in enumerate(value["spec"].get("volumeClaimTemplates") or ())
        for warning in claim_spec_warnings(f"spec.volumeClaimTemplates[{index}]{ending}", claim.get("spec") or {})
    ]


def _history_limit_warnings(value: Value) -> list[str]:
    return [_NEGATIVE_HISTORY] if (value["spec"].get("revisionHistoryLimit") or 0) < 0 else []


def stateful_set_warnings(value: Value) -> list[str]:
    """Warn of a new stateful set, its pods and its claims."""
    return template_warnings(value) + _claim_template_warnings(value, "") + _history_limit_warnings(value)


def stateful_set_update_warnings(value: Value, old: Value) -> list[str]:
    """Warn of a changed stateful set; the real server misspells the path of its claims."""
    return (
        template_update_warnings(value, old) + _claim_template_warnings(value, ".Spec") + _history_limit_warnings(value)
    )
