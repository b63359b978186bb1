"""Validation of fields that depend on the pod's OS (Kubernetes: validateOS, validateLinux, validateWindows …)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core.pods.container_validation.security_contexts import containers_with_paths
from batkube.api.validation.problems import Problems

_OPERATING_SYSTEMS = ("linux", "windows")
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
#: Fields that Windows does not support, in the order of the checks; True if outside the security context.
_POD_FIELDS = (
    ("appArmorProfile", False),
    ("seLinuxOptions", False),
    ("hostUsers", True),
    ("hostPID", True),
    ("hostIPC", True),
    ("seccompProfile", False),
    ("fsGroup", False),
    ("fsGroupChangePolicy", False),
    ("sysctls", False),
    ("shareProcessNamespace", True),
    ("runAsUser", False),
    ("runAsGroup", False),
    ("supplementalGroups", False),
    ("supplementalGroupsPolicy", False),
    ("seLinuxChangePolicy", False),
)
_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def check_os(spec: Mapping[str, Any], system: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check that the OS is known and that no field is set that it does not support."""
    name = system.get("name", "")
    if not name:
        problems.required(f"{path}.os.name")
    elif name not in _OPERATING_SYSTEMS:
        problems.not_supported(f"{path}.os", name, _OPERATING_SYSTEMS)
    elif name == "linux":
        _check_linux(spec, path, problems)
    else:
        _check_windows(spec, path, problems)


def _check_linux(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    detail = "windows options cannot be set for a linux pod"
    if spec.get("securityContext", {}).get("windowsOptions") is not None:
        problems.forbidden(f"{path}.securityContext.windowsOptions", detail)
    for container, at in containers_with_paths(spec, path):
        if container.get("securityContext", {}).get("windowsOptions") is not None:
            problems.forbidden(f"{at}.securityContext.windowsOptions", detail)


def _check_windows(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    context = spec.get("securityContext", {})
    for field, beside in _POD_FIELDS:
        value = (spec if beside else context).get(field)
        if value is not None and (value or field not in ("hostPID", "hostIPC", "sysctls")):
            problems.forbidden(f"{path}.{field}" if beside else f"{path}.securityContext.{field}", _NOT_ON_WINDOWS)
    for container, at in containers_with_paths(spec, path):
        inner = container.get("securityContext", {})
        for field in _CONTAINER_FIELDS:
            if inner.get(field) is not None:
                problems.forbidden(f"{at}.securityContext.{field}", _NOT_ON_WINDOWS)


def check_host_process(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check HostProcess containers of Windows: all containers of a pod or none, with the host's network."""
    of_pod = spec.get("securityContext", {}).get("windowsOptions", {}).get("hostProcess")
    total = as_processes = 0
    for container, at in containers_with_paths(spec, path):
        total += 1
        context = container.get("securityContext")
        own = context.get("windowsOptions", {}).get("hostProcess") if context else None
        if of_pod is not None and own is not None and of_pod != own:
            expected = "true" if of_pod else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {expected}"
            problems.invalid(f"{at}.securityContext.windowsOptions.hostProcess", own, detail)
        as_processes += bool(of_pod if own is None else own)
    if not as_processes:
        return
    if as_processes != total:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        problems.invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        problems.invalid(f"{path}.hostNetwork", False, detail)
