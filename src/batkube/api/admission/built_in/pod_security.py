"""PodSecurity: the standard that a namespace's labels hold its pods to.

Pods that violate the standard to enforce are refused; what violates the one to warn of, templates of workloads
included, gets a warning. Without labels everything is allowed. Kubernetes: pod-security-admission/admission.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from batkube.api.admission.built_in.pod_security_standards import violations
from batkube.api.admission.request import AdmissionRequest
from batkube.api.requests import statuses
from batkube.api.validation.field_errors import FieldError, invalid
from batkube.cluster.store import Key

_PREFIX = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"latest|v1\.(?:0|[1-9][0-9]*)")
#: Where the template of a workload is.
_TEMPLATE_PATHS: Mapping[str, tuple[str, ...]] = {
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
    "podtemplates": ("template",),
}
_DEFAULT_TEMPLATE_PATH = ("spec", "template")


def check_namespace_labels(attempt: AdmissionRequest) -> None:
    """Refuse labels of a namespace that name no standard."""
    labels = attempt.value["metadata"].get("labels") or {}
    problems = _validate_labels(labels)
    known = _validate_labels((attempt.old or {}).get("metadata", {}).get("labels") or {})
    if problems and problems != known:
        raise statuses.invalid(attempt.resource, attempt.value["metadata"].get("name", ""), problems)


def check_pod(attempt: AdmissionRequest) -> None:
    """Refuse a pod that violates the standard of its namespace, or warn of it."""
    labels = _pod_security_labels(attempt)
    if not labels or (attempt.old is not None and _container_images(attempt.value) == _container_images(attempt.old)):
        return
    spec, annotations = attempt.value["spec"], attempt.value["metadata"].get("annotations") or {}
    level = _level_for_mode(labels, "enforce")
    problem = violations(level, spec, annotations)
    if problem:
        raise attempt.forbidden(f'violates PodSecurity "{level}:{_version_for_mode(labels, "enforce")}": {problem}')
    _warn_if_violated(attempt, labels, spec, annotations)


def check_pod_template(attempt: AdmissionRequest) -> None:
    """Warn of a workload whose pods would violate the standard of their namespace."""
    labels = _pod_security_labels(attempt)
    if labels:
        template: Any = attempt.value
        for field in _TEMPLATE_PATHS.get(attempt.resource.storage, _DEFAULT_TEMPLATE_PATH):
            template = (template or {}).get(field)
        if template:
            annotations = (template.get("metadata") or {}).get("annotations") or {}
            _warn_if_violated(attempt, labels, template.get("spec") or {}, annotations)


def _warn_if_violated(
    attempt: AdmissionRequest, labels: Mapping[str, str], spec: dict[str, Any], annotations: dict[str, str]
) -> None:
    level, version = _level_for_mode(labels, "warn"), _version_for_mode(labels, "warn")
    enforced = _level_for_mode(labels, "enforce")
    if "warn" not in labels and "enforce" in labels and labels["enforce"] in _LEVELS:
        level = enforced
        if "warn-version" not in labels:
            version = _version_for_mode(labels, "enforce")
    problem = violations(level, spec, annotations)
    if problem:
        attempt.warnings.append(f'would violate PodSecurity "{level}:{version}": {problem}')


def _pod_security_labels(attempt: AdmissionRequest) -> dict[str, str]:
    """Return what the namespace says about the security of its pods, by the end of the labels' names."""
    namespace = attempt.store.get("namespaces", Key(attempt.namespace)) or {}
    labels = (namespace.get("metadata") or {}).get("labels") or {}
    return {name.removeprefix(_PREFIX): value for name, value in labels.items() if name.startswith(_PREFIX)}


def _level_for_mode(labels: Mapping[str, str], mode: str) -> str:
    """Return the standard for `mode`; what cannot be read is taken for the strictest, when it is enforced."""
    level = labels.get(mode, "privileged")
    return level if level in _LEVELS else "restricted" if mode == "enforce" else "privileged"


def _version_for_mode(labels: Mapping[str, str], mode: str) -> str:
    version = labels.get(f"{mode}-version", "latest")
    return version if _VERSION.fullmatch(version) else "latest"


def _validate_labels(labels: Mapping[str, str]) -> list[FieldError]:
    problems = []
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(_PREFIX + mode), labels.get(f"{_PREFIX}{mode}-version")
        if level is not None and level not in _LEVELS:
            text = f"must be one of {', '.join(_LEVELS)}"
            problems.append(invalid(f"metadata.labels[{_PREFIX}{mode}]", level, text))
        if version is not None and not _VERSION.fullmatch(version):
            field = f"metadata.labels[{_PREFIX}{mode}-version]"
            problems.append(invalid(field, version, 'must be "latest" or "v1.x"'))
    return problems


def _container_images(pod: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what of a changed pod is judged anew: which containers there are, and their images."""
    return [
        (kind, container.get("name", "") if kind == "ephemeralContainers" else "", container.get("image", ""))
        for kind in ("containers", "initContainers", "ephemeralContainers")
        for container in pod["spec"].get(kind) or ()
    ]
