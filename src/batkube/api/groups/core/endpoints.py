"""Endpoints. Kubernetes: pkg/apis/core and pkg/registry/core/endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.kind_model.address_warnings import ip_warnings
from batkube.api.groups.kind_model.defaults import TCP, fill_empty, list_items
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import UPSERT
from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import NONE, join_first
from batkube.api.validation.addresses import check_endpoint_ip, check_ip
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import dns_label, port_number, qualified_name, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_PROTOCOLS = ("SCTP", "TCP", "UDP")
#: Controllers known to write addresses in canonical form.
_MANAGED_BY = {"endpoints.kubernetes.io/managed-by": ("endpoint-controller",)}


# Defaults


def set_endpoints_defaults(obj: dict[str, Any]) -> None:
    """Set the protocol TCP of ports without one."""
    for subset in list_items(obj, "subsets"):
        for port in list_items(subset, "ports"):
            fill_empty(port, TCP)


# Validation


def _check_subsets(subsets: Sequence[Mapping[str, Any]], problems: Problems) -> None:
    for index, subset in enumerate(subsets):
        path, ports = f"subsets[{index}]", subset.get("ports") or ()
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            problems.required(path, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(field) or ()):
                _check_address(address, f"{path}.{field}[{number}]", problems)
        for number, port in enumerate(ports):
            _check_port(port, len(ports) > 1, f"{path}.ports[{number}]", problems)


def _check_address(address: Mapping[str, Any], path: str, problems: Problems) -> None:
    text = address.get("ip", "")
    check_ip(text, f"{path}.ip", problems)
    if host := address.get("hostname"):
        problems.all_invalid(f"{path}.hostname", host, dns_label(host))
    if (node := address.get("nodeName")) is not None:
        problems.all_invalid(f"{path}.nodeName", node, subdomain_name(node, False))
    check_endpoint_ip(text, f"{path}.ip", problems)


def _check_port(port: Mapping[str, Any], needs_name: bool, path: str, problems: Problems) -> None:
    if name := port.get("name"):
        problems.all_invalid(f"{path}.name", name, dns_label(name))
    elif needs_name:
        problems.required(f"{path}.name")
    problems.all_invalid(f"{path}.port", port.get("port", 0), port_number(port.get("port", 0)))
    check_protocol(port, path, problems)


def check_protocol(port: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check the protocol of a port in Endpoints or an EndpointSlice."""
    if (protocol := port.get("protocol")) is None:
        problems.required(f"{path}.protocol")
    elif protocol not in _PROTOCOLS:
        problems.not_supported(f"{path}.protocol", protocol, _PROTOCOLS)
    if (application := port.get("appProtocol")) is not None:
        problems.all_invalid(f"{path}.appProtocol", application, qualified_name(application))


def _validate_endpoints(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_subsets(value.get("subsets") or (), problems)


def _validate_endpoints_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    check_built_in_metadata(new["metadata"], subdomain_name, True, problems)
    if (new.get("subsets") or ()) != (old.get("subsets") or ()):
        _check_subsets(new.get("subsets") or (), problems)


# Columns


def endpoints_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an Endpoints object."""
    subsets = value.get("subsets") or ()
    text = join_first([address for subset in subsets for address in _subset_addresses(subset)], 3) if subsets else NONE
    return [value["metadata"].get("name", ""), text, age(value, now)]


def _subset_addresses(subset: Mapping[str, Any]) -> list[str]:
    hosts = [address.get("ip", "") for address in subset.get("addresses") or ()]
    ports = subset.get("ports")
    # A headless service may have no ports.
    return [_host_port(host, port.get("port", 0)) for port in ports for host in hosts] if ports else hosts


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# Warnings


def is_managed_by(value: Mapping[str, Any], managers: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether a controller manages the object, by its labels; such objects get no warnings."""
    labels = value["metadata"].get("labels") or {}
    return any(labels.get(label) in names for label, names in managers.items())


def endpoints_warnings(endpoints: Mapping[str, Any]) -> list[str]:
    """Return the warnings about addresses in a format that will become invalid."""
    if is_managed_by(endpoints, _MANAGED_BY):
        return []
    return [
        warning
        for index, subset in enumerate(endpoints.get("subsets") or ())
        for field in ("addresses", "notReadyAddresses")
        for number, address in enumerate(subset.get(field) or ())
        for warning in ip_warnings(f"subsets[{index}].{field}[{number}].ip", address.get("ip", ""))
    ]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "endpoints": Kind(
        defaults={"v1": set_endpoints_defaults},
        strategy=UPSERT,
        rules=ValidationRules(_validate_endpoints, _validate_endpoints_update),
        cells=endpoints_cells,
        warnings_on_create=endpoints_warnings,
        warnings_on_update={"": create_warnings_on_update(endpoints_warnings)},
    ),
}
