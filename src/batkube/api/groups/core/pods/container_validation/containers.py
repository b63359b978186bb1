"""Validation of containers, init containers and ephemeral containers.

Kubernetes: pkg/apis/core/validation (validateContainers, validateInitContainers, validateEphemeralContainers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from batkube.api.groups.core.pods.container_validation.environment import check_environment, check_environment_sources
from batkube.api.groups.core.pods.container_validation.probes import check_lifecycle, check_probes
from batkube.api.groups.core.pods.container_validation.security_contexts import check_container_security
from batkube.api.groups.core.volumes.source_validation import check_relative_path
from batkube.api.validation.names import dns_label, port_name, port_number
from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import check_container_resource, check_resource_requirements

Container = Mapping[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY_DEPTHS = ("Disabled", "Enabled", "IfPossible")
_RESIZED_RESOURCES = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_SIDECAR_ONLY = "may not be set for init containers without restartPolicy=Always"
#: The fields that an ephemeral container cannot have, in the order of the Go type.
_FORBIDDEN_IN_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_EPHEMERAL_FORBIDDEN = "cannot be set for an Ephemeral Container"


class PodContext(msgspec.Struct, frozen=True):
    """The context in a pod that the checks of a container need."""

    #: The volumes that may be mounted, by name.
    volumes: dict[str, Mapping[str, Any]]
    claims: frozenset[str]
    grace_period_s: int | None
    restart_policy: str
    host_users: bool


def check_containers(containers: Sequence[Container], around: PodContext, path: str, problems: Problems) -> None:
    """Check the regular containers of a pod."""
    if not containers:
        problems.required(path)
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        _check_common(container, around, at, problems)
        name = container.get("name", "")
        if name in names:
            problems.duplicate(f"{at}.name", name)
        names.add(name)
        _check_lifecycle_and_probes(container, around, at, problems)
    _check_host_ports(containers, path, problems)


def _check_lifecycle_and_probes(container: Container, around: PodContext, path: str, problems: Problems) -> None:
    if (lifecycle := container.get("lifecycle")) is not None:
        check_lifecycle(lifecycle, around.grace_period_s, f"{path}.lifecycle", problems)
    check_probes(container, around.grace_period_s, path, problems)


def check_init_containers(
    containers: Sequence[Container],
    others: Sequence[Container],
    around: PodContext,
    path: str,
    problems: Problems,
) -> None:
    """Check the init containers and sidecars of a pod."""
    names = {other.get("name", "") for other in others}
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        _check_common(container, around, at, problems)
        restart = container.get("restartPolicy")
        if restart not in (None, "Always"):
            problems.not_supported(f"{at}.restartPolicy", restart, ("Always",))
        name = container.get("name", "")
        if name in names:
            problems.duplicate(f"{at}.name", name)
        elif name:
            names.add(name)
        _check_host_ports([container], path, problems)
        if restart == "Always":
            _check_lifecycle_and_probes(container, around, at, problems)
        else:
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(field) is not None:
                    problems.forbidden(f"{at}.{field}", _SIDECAR_ONLY)


def check_ephemeral_containers(
    containers: Sequence[Container],
    others: Sequence[Container],
    around: PodContext,
    path: str,
    problems: Problems,
) -> None:
    """Check ephemeral containers, which are added to a running pod for debugging."""
    if not containers:
        return
    other_names = {other.get("name", "") for other in others}
    names = set(other_names)
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        _check_common(container, around, at, problems)
        check_image_whitespace(container, at, problems)
        name = container.get("name", "")
        if name in names:
            problems.duplicate(f"{at}.name", name)
        names.add(name)
        if (target := container.get("targetContainerName")) and target not in other_names:
            problems.not_found(f"{at}.targetContainerName", target)
        for field in _FORBIDDEN_IN_EPHEMERAL:
            if container.get(field):
                problems.forbidden(f"{at}.{field}", _EPHEMERAL_FORBIDDEN)
        for number, mount in enumerate(container.get("volumeMounts", ())):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    problems.forbidden(f"{at}.volumeMounts[{number}].{field}", _EPHEMERAL_FORBIDDEN)


def check_image_whitespace(container: Container, path: str, problems: Problems) -> None:
    """Check that the image has no surrounding white space, which templates may have."""
    image = container.get("image", "")
    if image != image.strip():
        problems.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _check_common(container: Container, around: PodContext, path: str, problems: Problems) -> None:
    name = container.get("name")
    if not name:
        problems.required(f"{path}.name")
    elif wrong := dns_label(name):
        problems.all_invalid(f"{path}.name", name, wrong)
    if not container.get("image"):
        problems.required(f"{path}.image")
    policy = container.get("terminationMessagePolicy", "")
    if policy not in _MESSAGE_POLICIES:
        _check_required_choice(policy, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy", problems)
    if ports := container.get("ports"):
        _check_ports(ports, f"{path}.ports", problems)
    if variables := container.get("env"):
        check_environment(variables, f"{path}.env", problems)
    if sources := container.get("envFrom"):
        check_environment_sources(sources, f"{path}.envFrom", problems)
    mounts, devices = container.get("volumeMounts", ()), container.get("volumeDevices", ())
    if mounts:
        _check_mounts(mounts, devices, container, around, f"{path}.volumeMounts", problems)
    if devices:
        _check_devices(devices, mounts, around, f"{path}.volumeDevices", problems)
    check_pull_policy(container.get("imagePullPolicy", ""), f"{path}.imagePullPolicy", problems)
    if resources := container.get("resources"):
        check_resource_requirements(resources, check_container_resource, around.claims, f"{path}.resources", problems)
    if policies := container.get("resizePolicy"):
        _check_resize_policies(policies, around.restart_policy, f"{path}.resizePolicy", problems)
    if (context := container.get("securityContext")) is not None:
        check_container_security(context, around.host_users, f"{path}.securityContext", problems)


def _check_required_choice(value: str, allowed: Sequence[str], path: str, problems: Problems) -> None:
    """Report a value that is not set or not supported."""
    if not value:
        problems.required(path)
    elif value not in allowed:
        problems.not_supported(path, value, allowed)


def check_pull_policy(policy: str, path: str, problems: Problems) -> None:
    """Check the image pull policy."""
    if policy not in PULL_POLICIES:
        _check_required_choice(policy, PULL_POLICIES, path, problems)


def _check_ports(ports: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if name := port.get("name"):
            if wrong := port_name(name):
                problems.all_invalid(f"{at}.name", name, wrong)
            elif name in names:
                problems.duplicate(f"{at}.name", name)
            else:
                names.add(name)
        number = port.get("containerPort", 0)
        if not number:
            problems.required(f"{at}.containerPort")
        else:
            problems.all_invalid(f"{at}.containerPort", number, port_number(number))
        if number := port.get("hostPort", 0):
            problems.all_invalid(f"{at}.hostPort", number, port_number(number))
        _check_required_choice(port.get("protocol", ""), PROTOCOLS, f"{at}.protocol", problems)


def _check_host_ports(containers: Sequence[Container], path: str, problems: Problems) -> None:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", ())):
            if host_port := port.get("hostPort"):
                place = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{host_port}"
                if place in taken:
                    problems.duplicate(f"{path}[{index}].ports[{number}].hostPort", place)
                taken.add(place)


def _check_mounts(
    mounts: Sequence[Mapping[str, Any]],
    devices: Sequence[Mapping[str, Any]],
    container: Container,
    around: PodContext,
    path: str,
    problems: Problems,
) -> None:
    taken: set[str] = set()
    device_paths = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    for index, mount in enumerate(mounts):
        at, name, mount_path = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            problems.required(f"{at}.name")
        if name not in around.volumes:
            problems.not_found(f"{at}.name", name)
        if not mount_path:
            problems.required(f"{at}.mountPath")
        if mount_path in taken:
            problems.invalid(f"{at}.mountPath", mount_path, "must be unique")
        taken.add(mount_path)
        if name in device_paths:
            problems.invalid(f"{at}.name", name, "must not already exist in volumeDevices")
        if mount_path in device_paths.values():
            problems.invalid(f"{at}.mountPath", mount_path, "must not already exist as a path in volumeDevices")
        _check_mount_options(mount, container, path, at, problems)


def _check_mount_options(
    mount: Mapping[str, Any], container: Container, path: str, at: str, problems: Problems
) -> None:
    """Check sub-path, propagation and recursion of a mount; most messages have the path of the list."""
    below, expression = mount.get("subPath"), mount.get("subPathExpr")
    if below:
        check_relative_path(below, f"{path}.subPath", problems)
    if expression:
        if below:
            problems.invalid(f"{at}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        check_relative_path(expression, f"{path}.subPathExpr", problems)
    if (propagation := mount.get("mountPropagation")) is not None:
        if propagation not in _PROPAGATIONS:
            problems.not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS)
        if propagation == "Bidirectional" and not container.get("securityContext", {}).get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            problems.forbidden(f"{path}.mountPropagation", detail)
    if (depth := mount.get("recursiveReadOnly")) is not None:
        if depth not in _READ_ONLY_DEPTHS:
            problems.not_supported(f"{path}.recursiveReadOnly", depth, _READ_ONLY_DEPTHS)
        elif depth != "Disabled":
            if not mount.get("readOnly"):
                problems.forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
            if propagation not in (None, "None"):
                detail = "may only be specified when mountPropagation is None or not specified"
                problems.forbidden(f"{path}.recursiveReadOnly", detail)


def _check_devices(
    devices: Sequence[Mapping[str, Any]],
    mounts: Sequence[Mapping[str, Any]],
    around: PodContext,
    path: str,
    problems: Problems,
) -> None:
    names: set[str] = set()
    paths: set[str] = set()
    mount_paths = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
    for index, device in enumerate(devices):
        at, name, where = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        volume = around.volumes.get(name)
        if not name:
            problems.required(f"{at}.name")
        if name in names:
            problems.invalid(f"{at}.name", name, "must be unique")
        if volume is None:
            problems.not_found(f"{at}.name", name)
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            problems.invalid(f"{at}.name", name, detail)
        if not where:
            problems.required(f"{at}.devicePath")
        if where in paths:
            problems.invalid(f"{at}.devicePath", where, "must be unique")
        if ".." in where.split("/"):
            problems.invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')")
        else:
            paths.add(where)
        if name in mount_paths:
            problems.invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if where in mount_paths.values():
            problems.invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


def _check_resize_policies(
    policies: Sequence[Mapping[str, Any]], restart_policy: str, path: str, problems: Problems
) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            problems.duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        _check_required_choice(resource, _RESIZED_RESOURCES, path, problems)
        _check_required_choice(restart, _RESIZE_POLICIES, path, problems)
        if restart_policy == "Never" and restart != "NotRequired":
            problems.invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'")
