"""Validation of the downward API: fields of a pod and resources of a container, for its containers.

Kubernetes: pkg/apis/core/validation (validateObjectFieldSelector, validateContainerResourceFieldSelector) and
pkg/apis/core/pods (ConvertDownwardAPIFieldLabel).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from batkube.api.validation.names import qualified_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import quantity

#: The fields for volumes, and those for environment variables.
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
ENVIRONMENT_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_KNOWN_FIELDS = frozenset(
    {*VOLUME_FIELDS, *ENVIRONMENT_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"}
)
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_SUBSCRIPT = re.compile(r"(?P<path>.+?)\['(?P<key>.*)'\]", re.DOTALL).fullmatch
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS: dict[str, tuple[tuple[str, ...], str]] = {
    "cpu": (("1m", "1"), "1m and 1 are supported with the cpu resource"),
    "memory": (_BYTE_DIVISORS, f"{', '.join(_BYTE_DIVISORS)} are supported with the memory resource"),
    "ephemeral-storage": (
        _BYTE_DIVISORS,
        f"{', '.join(_BYTE_DIVISORS)} are supported with the local ephemeral storage resource",
    ),
    "hugepages": (_BYTE_DIVISORS, f"{', '.join(_BYTE_DIVISORS)} are supported with the hugepages resource"),
}


def check_field_selector(selector: Mapping[str, Any], allowed: tuple[str, ...], path: str, problems: Problems) -> None:
    """Check a reference to a field of the pod."""
    version, field = selector.get("apiVersion"), selector.get("fieldPath")
    if not version:
        problems.required(f"{path}.apiVersion")
    elif not field:
        problems.required(f"{path}.fieldPath")
    elif wrong := _conversion_problem(version, field):
        problems.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {wrong}")
    elif match := _SUBSCRIPT(field):
        key = match["key"].lower() if match["path"] == "metadata.annotations" else match["key"]
        problems.all_invalid(path, key, qualified_name(key))
    else:
        inside = "spec.nodeName" if field == "spec.host" else field
        if inside not in allowed:
            problems.not_supported(f"{path}.fieldPath", inside, allowed)


def _conversion_problem(version: str, field: str) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if match := _SUBSCRIPT(field):
        good = match["path"] in ("metadata.annotations", "metadata.labels")
        return "" if good else f"field label does not support subscript: {field}"
    return "" if field in _KNOWN_FIELDS else f"field label not supported: {field}"


def check_resource_field_selector(
    selector: Mapping[str, Any], path: str, problems: Problems, *, in_volume: bool = False
) -> None:
    """Check a reference to a container's requests or limits."""
    name = selector.get("resource", "")
    if in_volume and not selector.get("containerName"):
        problems.required(f"{path}.containerName")
    elif not name:
        problems.required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        problems.not_supported(f"{path}.resource", name, _RESOURCES)
    divisor = selector.get("divisor")
    if divisor is None or quantity(divisor).nanos == 0:
        return
    kind = "hugepages" if name.startswith(_HUGE_PAGES) else name.partition(".")[2] if name in _RESOURCES else ""
    if kind and str(quantity(divisor)) not in _DIVISORS[kind][0]:
        problems.invalid(f"{path}.divisor", name, f"only divisor's values {_DIVISORS[kind][1]}")
