"""PodSecurity: enforces the Pod Security Standard that a namespace's labels select.

A pod that violates the `enforce` level is rejected. A pod or pod template that violates the `warn` level causes a
warning. A namespace without labels allows everything. Kubernetes: pod-security-admission/admission/admission.go.
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
#: The path of the pod template by kind, where it is not spec.template.
_TEMPLATE_PATHS: Mapping[str, tuple[str, ...]] = {
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
    "podtemplates": ("template",),
}
_DEFAULT_TEMPLATE_PATH = ("spec", "template")


def check_namespace_labels(request: AdmissionRequest) -> None:
    """Reject a namespace whose labels name an unknown level or version, unless the labels are unchanged."""
    labels = request.value["metadata"].get("labels") or {}
    problems = _validate_labels(labels)
    old_problems = _validate_labels((request.old or {}).get("metadata", {}).get("labels") or {})
    if problems and problems != old_problems:
        raise statuses.invalid(request.resource, request.value["metadata"].get("name", ""), problems)


def check_pod(request: AdmissionRequest) -> None:
    """Reject a pod that violates the enforced level of its namespace, or add a warning."""
    labels = _pod_security_labels(request)
    if not labels or (request.old is not None and _container_images(request.value) == _container_images(request.old)):
        return
    spec, annotations = request.value["spec"], request.value["metadata"].get("annotations") or {}
    level = _level_for_mode(labels, "enforce")
    problem = violations(level, spec, annotations)
    if problem:
        raise request.forbidden(f'violates PodSecurity "{level}:{_version_for_mode(labels, "enforce")}": {problem}')
    _warn_if_violated(request, labels, spec, annotations)


def check_pod_template(request: AdmissionRequest) -> None:
    """Add a warning for a workload whose pods would violate the level of their namespace."""
    labels = _pod_security_labels(request)
    if labels:
        template: Any = request.value
        for field in _TEMPLATE_PATHS.get(request.resource.storage, _DEFAULT_TEMPLATE_PATH):
            template = (template or {}).get(field)
        if template:
            annotations = (template.get("metadata") or {}).get("annotations") or {}
            _warn_if_violated(request, labels, template.get("spec") or {}, annotations)


def _warn_if_violated(
    request: AdmissionRequest, labels: Mapping[str, str], spec: dict[str, Any], annotations: dict[str, str]
) -> None:
    level, version = _level_for_mode(labels, "warn"), _version_for_mode(labels, "warn")
    enforced = _level_for_mode(labels, "enforce")
    if "warn" not in labels and "enforce" in labels and labels["enforce"] in _LEVELS:
        level = enforced
        if "warn-version" not in labels:
            version = _version_for_mode(labels, "enforce")
    problem = violations(level, spec, annotations)
    if problem:
        request.warnings.append(f'would violate PodSecurity "{level}:{version}": {problem}')


def _pod_security_labels(request: AdmissionRequest) -> dict[str, str]:
    """Return the pod security labels of the namespace, without their prefix."""
    namespace = request.store.get("namespaces", Key(request.namespace)) or {}
    labels = (namespace.get("metadata") or {}).get("labels") or {}
    return {name.removeprefix(_PREFIX): value for name, value in labels.items() if name.startswith(_PREFIX)}


def _level_for_mode(labels: Mapping[str, str], mode: str) -> str:
    """Return the level for `mode`. An invalid label counts as `restricted` if enforced, else as `privileged`."""
    # Kubernetes: pod-security-admission/api/helpers.go, PolicyToEvaluate.
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
    """Return the containers and images of a pod; an update that leaves them unchanged is not checked again."""
    return [
        (kind, container.get("name", "") if kind == "ephemeralContainers" else "", container.get("image", ""))
        for kind in ("containers", "initContainers", "ephemeralContainers")
        for container in pod["spec"].get(kind) or ()
    ]
