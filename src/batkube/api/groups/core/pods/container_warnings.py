"""Warnings about the containers of a pod. Kubernetes: pkg/api/pod/warnings.go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from batkube.api.groups.core.pods.strategy import app_armor_profile
from batkube.api.groups.core.volumes.warnings import fractional_byte_warnings
from batkube.api.validation.field_errors import go_quote

_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_BYTES = (
    ("limits", "memory"),
    ("requests", "memory"),
    ("limits", "ephemeral-storage"),
    ("requests", "ephemeral-storage"),
)

Container = Mapping[str, Any]


def container_warnings(spec: Mapping[str, Any], annotations: Mapping[str, str], path: str) -> list[str]:
    """Return the warnings about all containers of a pod, or of a template at `path`."""
    containers = [
        (container, f"{path}spec.{field}[{index}]")
        for field in ("initContainers", "containers", "ephemeralContainers")
        if spec.get(field)
        for index, container in enumerate(spec[field])
    ]
    warnings: list[str] = []
    for container, place in containers:
        if annotations:
            warnings += _annotation_warnings(container, spec, annotations, path)
        for field, resource in _BYTES:
            amounts = (container.get("resources") or {}).get(field)
            if amounts and resource in amounts:
                warnings += fractional_byte_warnings(f"{place}.resources.{field}[{resource}]", amounts[resource])
        if len(container.get("env") or ()) > 1:
            warnings += _environment_warnings(container, place)
    ports = [
        (port, f"{place}.ports[{index}]")
        for container, place in containers
        if container.get("ports")
        for index, port in enumerate(container["ports"])
    ]
    if ports:
        warnings += _port_warnings(ports)
        warnings += _port_name_warnings(ports)
    return warnings


def _annotation_warnings(
    container: Container, spec: Mapping[str, Any], annotations: Mapping[str, str], path: str
) -> Iterator[str]:
    """Yield warnings about security annotations; AppArmor profiles of pods become fields, so only templates warn."""
    security, name = container.get("securityContext") or {}, container.get("name", "")
    if _SECCOMP + name in annotations and not security.get("seccompProfile"):
        yield (
            f"{path}metadata.annotations[{_SECCOMP}{name}]: non-functional in v1.27+; "
            'use the "seccompProfile" field instead'
        )
    if path and _APP_ARMOR + name in annotations and not security.get("appArmorProfile"):
        of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
        if of_pod is None or of_pod != app_armor_profile(annotations[_APP_ARMOR + name]):
            yield (
                f"{path}metadata.annotations[{_APP_ARMOR}{name}]: deprecated since v1.30; "
                'use the "appArmorProfile" field instead'
            )


def _environment_warnings(container: Container, place: str) -> Iterator[str]:
    """Yield warnings about environment variables that override earlier ones."""
    seen = {}
    for index, variable in enumerate(container["env"]):
        name, value = variable.get("name", ""), variable.get("value", "")
        if name in seen:
            reference = f"$({name})"
            builds_upon = "valueFrom" not in variable and value != reference and reference in value
            if not builds_upon:
                yield (
                    f"{place}.env[{index}]: hides previous definition of {go_quote(name)}, "
                    "which may be dropped when using apply"
                )
        seen[name] = True


def _port_warnings(ports: list[tuple[Container, str]]) -> Iterator[str]:
    """Yield warnings about duplicate or overlapping ports."""
    ports_by_number: dict[tuple[int, str], list[tuple[Container, str]]] = {}
    for port, place in ports:
        address, host_port = port.get("hostIP", ""), port.get("hostPort", 0)
        number, protocol = port.get("containerPort", 0), port.get("protocol", "")
        if address and not host_port:
            port_text = f"HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{address}"
            yield f"{place}: hostIP set without hostPort: {{Name:{port.get('name', '')} {port_text}}}"
        earlier_ports = ports_by_number.setdefault((number, protocol), [])
        for earlier, earlier_path in earlier_ports:
            other_address, other_host_port = earlier.get("hostIP", ""), earlier.get("hostPort", 0)
            if address == other_address and host_port == other_host_port:
                yield f"{place}: duplicate port definition with {earlier_path}"
            elif not host_port or not other_host_port:
                yield f"{place}: overlapping port definition with {earlier_path}"
            elif host_port == other_host_port and bool(address) != bool(other_address):
                yield f"{place}: dangerously ambiguous port definition with {earlier_path}"
        earlier_ports.append((port, place))


def _port_name_warnings(ports: list[tuple[Container, str]]) -> Iterator[str]:
    """Yield warnings about port names that another container uses."""
    paths_by_name: dict[str, str] = {}
    for port, place in ports:
        name = port.get("name")
        if not name:
            continue
        first = paths_by_name.setdefault(name, place)
        if first != place:
            yield (
                f"{place}: duplicate port name {go_quote(name)} with {first}, services and probes that select ports by "
                f"name will use {first}"
            )
