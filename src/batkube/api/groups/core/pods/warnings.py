"""Warnings about pods and pod templates. Kubernetes: pkg/api/pod/warnings.go.

Most writes create or change pods, so each check runs only if the pod has the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batkube.api.groups.core.deprecated_node_labels import (
    DEPRECATED_LABELS,
    node_label_warnings,
    node_selector_term_warnings,
)
from batkube.api.groups.core.pods.container_warnings import container_warnings
from batkube.api.groups.core.pods.volume_warnings import pod_volume_warnings
from batkube.api.groups.core.volumes.warnings import fractional_byte_warnings
from batkube.api.groups.kind_model.address_warnings import ip_list_warnings, ip_warnings
from batkube.api.validation.field_errors import go_quote
from batkube.api.validation.names import dns_label

Spec = Mapping[str, Any]

_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Value = Mapping[str, Any]


def pod_warnings(pod: Mapping[str, Any]) -> list[str]:
    """Return the warnings about a new pod."""
    metadata = pod["metadata"]
    warnings = pod_spec_warnings(pod["spec"], metadata, "")
    wrong = dns_label(metadata.get("name", ""))
    if wrong:
        warning = (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label "
            f"is recommended: [{' '.join(wrong)}]"
        )
        warnings.insert(0, warning)
    return warnings


def pod_status_warnings(pod: Mapping[str, Any]) -> list[str]:
    """Return the warnings about addresses in a pod's status."""
    status = pod.get("status") or {}
    return [
        warning
        for field in ("podIPs", "hostIPs")
        for index, address in enumerate(status.get(field) or ())
        for warning in ip_warnings(f"status.{field}[{index}].ip", address.get("ip", ""))
    ]


def pod_spec_warnings(spec: Spec, metadata: Mapping[str, Any], path: str) -> list[str]:
    """Return the warnings about a pod, or a template at `path` (such as `spec.template.`)."""
    warnings: list[str] = []
    place, affinity = f"{path}spec", spec.get("affinity") or {}
    warnings += _node_selection_warnings(spec, affinity.get("nodeAffinity") or {}, place)
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    if annotations:
        warnings += [
            f"{path}metadata.annotations[{key}]: {_ANNOTATIONS[key]}" for key in _ANNOTATIONS if key in annotations
        ]
    if spec.get("volumes"):
        warnings += pod_volume_warnings(spec["volumes"], f"{place}.volumes")
    warnings += _duplicate_item_warnings(spec.get("hostAliases") or (), "ip", f"{place}.hostAliases")
    pull_secrets = spec.get("imagePullSecrets") or ()
    warnings += _duplicate_item_warnings(pull_secrets, "name", f"{place}.imagePullSecrets")
    for index, secret in enumerate(pull_secrets):
        if not secret.get("name"):
            warnings.append(f'{place}.imagePullSecrets[{index}].name: invalid empty name ""')
    if spec.get("overhead"):
        for resource in ("memory", "ephemeral-storage"):
            warnings += fractional_byte_warnings(f"{place}.overhead[{resource}]", spec["overhead"].get(resource))
    if _SECCOMP in annotations and not (spec.get("securityContext") or {}).get("seccompProfile"):
        warnings.append(
            f'{path}metadata.annotations[{_SECCOMP}]: non-functional in v1.27+; use the "seccompProfile" field instead'
        )
    warnings += container_warnings(spec, annotations, path)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        warnings.append(
            f"{place}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    for field in ("podAffinity", "podAntiAffinity"):
        if affinity.get(field):
            warnings += _pod_selection_warnings(affinity[field], f"{place}.affinity.{field}")
    if spec.get("dnsConfig"):
        warnings += ip_list_warnings(f"{place}.dnsConfig.nameservers", spec["dnsConfig"].get("nameservers") or ())
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        warnings += ip_warnings(f"{place}.hostAliases[{index}].ip", alias.get("ip", ""))
    return warnings


def _node_selection_warnings(spec: Spec, affinity: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield warnings about deprecated node labels in node selection."""
    for key in sorted(spec.get("nodeSelector") or ()):
        if key in DEPRECATED_LABELS:
            yield f"{place}.nodeSelector[{key}]: {DEPRECATED_LABELS[key]}"
    if affinity:
        path = f"{place}.affinity.nodeAffinity"
        terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
        yield from node_selector_term_warnings(f"{path}.{_REQUIRED}.nodeSelectorTerms", terms)
        for index, term in enumerate(affinity.get(_PREFERRED) or ()):
            term_path = f"{path}.{_PREFERRED}[{index}].preference"
            yield from node_label_warnings(term_path, term.get("preference") or {}, values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        term_path, key = f"{place}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in DEPRECATED_LABELS:
            yield f"{term_path}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{term_path}.labelSelector: {_NO_SELECTOR}"


def _pod_selection_warnings(affinity: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield warnings about pod affinity terms without a label selector."""
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{path}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
            yield f"{path}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _duplicate_item_warnings(items: Sequence[Mapping[str, Any]], field: str, path: str) -> Iterator[str]:
    """Yield warnings about list items with duplicate merge keys."""
    seen = {}
    for index, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            yield f"{path}[{index}].{field}: duplicate {field} {go_quote(value)}"
        seen[value] = True


def pod_template_spec_warnings(path: str, template: Value | None) -> list[str]:
    """Return the warnings about the pod template at `path`."""
    if template is None:
        return []
    return pod_spec_warnings(template.get("spec") or {}, template.get("metadata") or {}, f"{path}.")


def is_generation_changed(value: Value, old: Value) -> bool:
    """Return whether the spec has changed, by its generation."""
    return bool(value["metadata"].get("generation") != old["metadata"].get("generation"))


def pod_template_warnings(value: Value) -> list[str]:
    """Return the warnings about a PodTemplate."""
    return pod_template_spec_warnings("template", value.get("template"))


def pod_template_update_warnings(value: Value, old: Value) -> list[str]:
    """Return the warnings about an updated PodTemplate."""
    return pod_template_warnings(value) if is_generation_changed(value, old) else []
