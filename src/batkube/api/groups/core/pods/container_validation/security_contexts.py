"""Validation of security contexts of pods and containers, and of the annotations that preceded them.

Kubernetes: pkg/apis/core/validation (ValidateSecurityContext, validatePodSpecSecurityContext and their helpers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from batkube.api.groups.core.volumes.source_validation import check_relative_path
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.names import byte_length, dns_subdomain, user_or_group_id
from batkube.api.validation.problems import Problems

Context = Mapping[str, Any]

SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
_LOCALHOST = "localhost/"
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_NAME = rf"^({_SYSCTL}[\./])*{_SYSCTL}$"
_is_sysctl = re.compile(_SYSCTL_NAME.strip("^$")).fullmatch
_IPC_SYSCTLS = frozenset(
    [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ]
)
_SWAP_DOTS_AND_SLASHES = str.maketrans("./", "/.")
_NETBIOS = re.compile(r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}').fullmatch
_DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_WINDOWS_DOMAIN = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*").fullmatch
_WINDOWS_USER_REFUSES = re.compile(r'["/\\:;|=,\+\*\?<>@\[\]]').search
_CONTROL = re.compile(r"[\x00-\x1f\x7f]").search
_ONLY_DOTS_AND_SPACES = re.compile(r"[\. ]+").fullmatch


def containers_with_paths(spec: Mapping[str, Any], path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield every container with its path, in the order of Kubernetes' VisitContainersWithPath."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{index}]"


def _check_ids(context: Context, fields: tuple[str, ...], path: str, problems: Problems) -> None:
    for field in fields:
        if (number := context.get(field)) is not None:
            problems.all_invalid(f"{path}.{field}", number, user_or_group_id(number))


def check_container_security(context: Context, host_users: bool, path: str, problems: Problems) -> None:
    """Check the security context of a container."""
    _check_ids(context, ("runAsUser", "runAsGroup"), path, problems)
    if (mount := context.get("procMount")) is not None:
        if mount not in ("Default", "Unmasked"):
            problems.not_supported(f"{path}.procMount", mount, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            problems.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    _check_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", problems)
    if context.get("allowPrivilegeEscalation") is False:
        go_text = go_struct("core.SecurityContext", context)
        refused = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            problems.invalid(path, go_text, f"{refused} `privileged` to true")
        for capability in context.get("capabilities", {}).get("add", ()):
            if capability == "CAP_SYS_ADMIN":
                problems.invalid(path, go_text, f"{refused} `capabilities.Add` CAP_SYS_ADMIN")
    _check_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", problems)
    _check_apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile", problems)


def check_pod_security(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check the security context of a pod; some fields of the internal type are in the pod's spec in the API."""
    context = spec.get("securityContext")
    if not context and not spec.get("shareProcessNamespace"):
        return
    context = context or {}
    _check_ids(context, ("fsGroup", "runAsUser", "runAsGroup"), path, problems)
    for index, group in enumerate(context.get("supplementalGroups", ())):
        problems.all_invalid(f"{path}.supplementalGroups[{index}]", group, user_or_group_id(group))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        problems.invalid(f"{path}.shareProcessNamespace", True, detail)
    _check_sysctls(spec, context, f"{path}.sysctls", problems)
    _check_choice(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path, problems)
    _check_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", problems)
    _check_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", problems)
    _check_apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile", problems)
    _check_choice(context, "supplementalGroupsPolicy", ("Merge", "Strict"), path, problems)
    # Mounting with a label is behind the gate SELinuxMount, which is off.
    _check_choice(context, "seLinuxChangePolicy", ("Recursive",), path, problems)


def _check_choice(context: Context, field: str, allowed: tuple[str, ...], path: str, problems: Problems) -> None:
    value = context.get(field)
    if value is not None and value not in allowed:
        problems.not_supported(f"{path}.{field}", value, allowed)


def _check_sysctls(spec: Mapping[str, Any], context: Context, path: str, problems: Problems) -> None:
    names: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls", ())):
        at, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            problems.required(at)
        elif byte_length(name) > 253 or not _is_sysctl(name):
            problems.invalid(at, name, f"must have at most 253 characters and match regex {_SYSCTL_NAME}")
        elif name in names:
            problems.duplicate(at, name)
        namespace = _sysctl_namespace(name)
        if spec.get("hostNetwork") and namespace == "Net":
            problems.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and namespace == "IPC":
            problems.invalid(at, name, "may not be specified when 'hostIPC' is true")
        names.add(name)


def _sysctl_namespace(name: str) -> str:
    """Return the Linux namespace of a sysctl (component-helpers/node/util/sysctl)."""
    separator = next((char for char in name if char in "./"), ".")
    dotted = name.translate(_SWAP_DOTS_AND_SLASHES) if separator == "/" else name
    dotted = dotted.partition("*")[0]
    if dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue."):
        return "IPC"
    return "Net" if dotted.startswith("net.") else ""


def _check_seccomp(profile: Context | None, path: str, problems: Problems) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        problems.required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        problems.not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    if kind == "Localhost":
        if local is None:
            problems.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            check_relative_path(local, f"{path}.localhostProfile", problems)
    elif local is not None:
        go_text = go_struct("core.SeccompProfile", profile)
        problems.invalid(f"{path}.localhostProfile", go_text, "can only be set when seccomp type is Localhost")


def _check_apparmor(profile: Context | None, path: str, problems: Problems) -> None:
    if profile is None:
        return
    kind, local, at = profile.get("type", ""), profile.get("localhostProfile"), f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None or local == "":
            problems.required(at, "must be set when AppArmor type is Localhost")
        elif local != local.strip():
            problems.invalid(at, local, "must not be padded with whitespace")
        if local is not None and byte_length(local) > 4095:
            problems.too_long(at, 4095)
    elif kind in _PROFILE_TYPES:
        if local is not None:
            problems.invalid(at, local, "can only be set when AppArmor type is Localhost")
    elif not kind:
        problems.required(f"{path}.type", "type is required when appArmorProfile is set")
    else:
        problems.not_supported(f"{path}.type", kind, _PROFILE_TYPES)


def _check_windows_options(options: Context | None, path: str, problems: Problems) -> None:
    if options is None:
        return
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        problems.all_invalid(f"{path}.gmsaCredentialSpecName", name, dns_subdomain(name))
    if (text := options.get("gmsaCredentialSpec")) is not None:
        if not text:
            detail = "gmsaCredentialSpec cannot be an empty string"
            problems.invalid(f"{path}.gmsaCredentialSpec", text, detail)
        elif byte_length(text) > 64 * 1024:
            problems.invalid(f"{path}.gmsaCredentialSpec", text, "gmsaCredentialSpec size must be under 64 KiB")
    if (user := options.get("runAsUserName")) is not None:
        for wrong in _windows_user_problems(user):
            problems.invalid(f"{path}.runAsUserName", user, f"runAsUserName{wrong}")


def _windows_user_problems(text: str) -> Iterator[str]:
    if not text:
        yield " cannot be an empty string"
    elif _CONTROL(text):
        yield " cannot contain control characters"
    elif text.count("\\") > 1:
        yield " cannot contain more than one backslash"
    else:
        domain, backslash, user = text.rpartition("\\")
        if byte_length(domain) >= 256:
            yield "'s Domain length must be under 256 characters"
        if backslash and not (_NETBIOS(domain) or _WINDOWS_DOMAIN(domain)):
            yield "'s Domain doesn't match the NetBios nor the DNS format"
        if not user:
            yield "'s User cannot be empty"
        elif byte_length(user) > 104:
            yield "'s User length must not be longer than 104 characters"
        if _ONLY_DOTS_AND_SPACES(user):
            yield "'s User cannot contain only periods or spaces"
        if _WINDOWS_USER_REFUSES(user):
            yield """'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]"""


def check_security_annotations(
    annotations: Mapping[str, str], spec: Mapping[str, Any], path: str, problems: Problems
) -> None:
    """Check the deprecated annotations for seccomp and AppArmor profiles."""
    for key, profile in annotations.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            _check_seccomp_text(profile, f"{path}.{key}", problems)
    for key, profile in annotations.items():
        if not key.startswith(APPARMOR_CONTAINER):
            continue
        name = key.removeprefix(APPARMOR_CONTAINER)
        if not any(container.get("name") == name for container, _ in containers_with_paths(spec, "")):
            problems.invalid(f"{path}[{key}]", name, "container not found")
        is_supported = profile in ("", "runtime/default", "unconfined") or profile.startswith(_LOCALHOST)
        if not is_supported:
            problems.invalid(f"{path}[{key}]", profile, f'invalid AppArmor profile name: "{profile}"')


def _check_seccomp_text(profile: str, path: str, problems: Problems) -> None:
    if profile.startswith(_LOCALHOST):
        check_relative_path(profile.removeprefix(_LOCALHOST), path, problems)
    elif profile not in ("runtime/default", "docker/default", "unconfined"):
        problems.invalid(path, profile, "must be a valid seccomp profile")


def check_annotations_match_fields(
    annotations: Mapping[str, str], spec: Mapping[str, Any], path: str, problems: Problems
) -> None:
    """Check that annotations and fields are equal if both are set; this runs on creation only."""
    if not annotations:
        return
    context = spec.get("securityContext", {})
    if (profile := context.get("seccompProfile")) and (text := annotations.get(SECCOMP_POD)) is not None:
        _check_match("seccomp", profile, text, f"{path}.securityContext.seccompProfile", problems)
    for container, at in containers_with_paths(spec, path):
        profile = container.get("securityContext", {}).get("seccompProfile")
        text = annotations.get(SECCOMP_CONTAINER + container.get("name", ""))
        if profile is not None and text is not None:
            _check_match("seccomp", profile, text, f"{at}.securityContext.seccompProfile", problems)
    if spec.get("os", {}).get("name") == "windows":
        return
    for container, at in containers_with_paths(spec, path):
        profile = container.get("securityContext", {}).get("appArmorProfile") or context.get("appArmorProfile")
        text = annotations.get(APPARMOR_CONTAINER + container.get("name", ""))
        if profile is not None and text is not None:
            _check_match("apparmor", profile, text, f"{at}.securityContext.appArmorProfile", problems)


def _check_match(noun: str, profile: Context, text: str, path: str, problems: Problems) -> None:
    kind = profile.get("type")
    if kind == "Localhost" and text.startswith(_LOCALHOST):
        if profile.get("localhostProfile") != text.removeprefix(_LOCALHOST):
            problems.forbidden(f"{path}.localhostProfile", f"{noun} profile in annotation and field must match")
        return
    docker = ("docker/default",) if noun == "seccomp" else ()
    texts = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", *docker), "Localhost": ()}
    if kind in texts and text not in texts[kind]:
        problems.forbidden(f"{path}.type", f"{noun} type in annotation and field must match")
