"""Warnings about workloads with a pod template. Kubernetes: the strategies of pkg/registry/{apps,core}."""

from __future__ import annotations

from batkube.api.groups.core.pods.warnings import Value, is_generation_changed, pod_template_spec_warnings
from batkube.api.groups.core.volumes.warnings import claim_spec_warnings
from batkube.api.validation.names import dns_label

_NEGATIVE_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_TEMPLATE = "spec.template"


def name_warnings(value: Value) -> list[str]:
    """Return the warnings about names that lead to invalid host names of pods."""
    wrong = dns_label(value["metadata"].get("name", ""))
    if not wrong:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        f"is recommended: [{' '.join(wrong)}]"
    ]


def template_warnings(value: Value) -> list[str]:
    """Return the warnings about the pod template of a new object."""
    return pod_template_spec_warnings(_TEMPLATE, value["spec"].get("template"))


def named_template_warnings(value: Value) -> list[str]:
    """Return the warnings about the pod template and the name of a new object."""
    return name_warnings(value) + template_warnings(value)


def template_update_warnings(value: Value, old: Value) -> list[str]:
    """Return the warnings about the pod template of an updated object."""
    return template_warnings(value) if is_generation_changed(value, old) else []


def daemon_set_update_warnings(value: Value, old: Value) -> list[str]:
    """Return the warnings about an updated DaemonSet, whose templateGeneration counts template changes only."""
    return template_warnings(value) if value["spec"]["template"] != old["spec"]["template"] else []


def replication_controller_update_warnings(value: Value, old: Value) -> list[str]:
    """Return the warnings about an updated ReplicationController; kube-apiserver checks its old template."""
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
    """Return the warnings about a new StatefulSet, its pod template and its claim templates."""
    return template_warnings(value) + _claim_template_warnings(value, "") + _history_limit_warnings(value)


def stateful_set_update_warnings(value: Value, old: Value) -> list[str]:
    """Return the warnings about an updated StatefulSet; kube-apiserver misspells the path of its claim templates."""
    return (
        template_update_warnings(value, old) + _claim_template_warnings(value, ".Spec") + _history_limit_warnings(value)
    )
