"""EndpointSlices. Kubernetes: pkg/apis/discovery and pkg/registry/discovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.endpoints import check_protocol, is_managed_by
from batkube.api.groups.kind_model.address_warnings import ip_list_warnings
from batkube.api.groups.kind_model.defaults import Defaults, fill_absent, list_items
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import LABELS, Strategy
from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import join_first_three
from batkube.api.validation.addresses import check_endpoint_ip, check_ip, check_strict_ip, is_ipv6
from batkube.api.validation.metadata import check_built_in_metadata, check_labels
from batkube.api.validation.names import dns_label, dns_subdomain, label_value, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_ENDPOINT_PORT: Defaults = {"name": "", "protocol": "TCP"}
_SLICE_CONTROLLERS = {
    "endpointslice.kubernetes.io/managed-by": (
        "endpointslice-controller.k8s.io",
        "endpointslicemirroring-controller.k8s.io",
    )
}
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


# Defaults


def set_endpoint_slice_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of name and protocol of every port."""
    for port in list_items(obj, "ports"):
        fill_absent(port, _ENDPOINT_PORT)


# Validation


def _validate_slice(value: Object, problems: Problems, before: object = None) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    kind = value.get("addressType", "")
    if not kind:
        problems.required("addressType")
    elif kind not in _ADDRESS_TYPES:
        problems.not_supported("addressType", kind, _ADDRESS_TYPES)
    _check_slice_ports(value.get("ports") or (), problems)
    if before is None or before != value.get("endpoints"):
        _check_endpoints(value.get("endpoints") or (), kind, problems)


def _check_slice_ports(ports: Sequence[Mapping[str, Any]], problems: Problems) -> None:
    if len(ports) > 20000:
        problems.too_many("ports", len(ports), 20000)
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            problems.all_invalid(f"{path}.name", name, dns_label(name))
        if name in names:
            problems.duplicate(f"{path}.name", name)
        names.add(name)
        check_protocol(port, path, problems)


def _check_endpoints(endpoints: Sequence[Mapping[str, Any]], kind: str, problems: Problems) -> None:
    if len(endpoints) > 1000:
        problems.too_many("endpoints", len(endpoints), 1000)
        return
    for index, endpoint in enumerate(endpoints):
        path, addresses = f"endpoints[{index}]", endpoint.get("addresses") or ()
        if not addresses:
            problems.required(f"{path}.addresses", "must contain at least 1 address")
        elif len(addresses) > 100:
            problems.too_many(f"{path}.addresses", len(addresses), 100)
        for number, address in enumerate(addresses):
            _check_slice_address(address, kind, f"{path}.addresses", number, problems)
        if (node := endpoint.get("nodeName")) is not None:
            problems.all_invalid(f"{path}.nodeName", node, subdomain_name(node, False))
        topology = endpoint.get("deprecatedTopology") or {}
        if len(topology) > 16:
            problems.too_many(f"{path}.deprecatedTopology", len(topology), 16)
        check_labels(topology, f"{path}.deprecatedTopology", problems)
        if (host := endpoint.get("hostname")) is not None:
            problems.all_invalid(f"{path}.hostname", host, dns_label(host))
        _check_hints(endpoint.get("hints") or {}, f"{path}.hints", problems)


def _check_slice_address(text: str, kind: str, path: str, index: int, problems: Problems) -> None:
    at, before = f"{path}[{index}]", len(problems)
    if kind == "FQDN":
        _check_domain(text, at, problems)
    elif kind in ("IPv4", "IPv6"):
        if kind == "IPv4":
            check_ip(text, at, problems)
        else:
            check_strict_ip(text, at, problems)
        if len(problems) == before:
            if is_ipv6(text) != (kind == "IPv6"):
                problems.invalid(path, text, f"must be an {kind} address")
            check_endpoint_ip(text, at, problems)


def _check_domain(text: str, path: str, problems: Problems) -> None:
    """Check a fully qualified domain name (Kubernetes: IsFullyQualifiedDomainName)."""
    name = text.removesuffix(".")
    if not text:
        problems.required(path)
    elif wrong := dns_subdomain(name):
        problems.invalid(path, name, ",".join(wrong))
    elif "." not in name:
        problems.invalid(path, name, "should be a domain with at least two segments separated by dots")
    else:
        for label in name.split("."):
            if wrong := dns_label(label):
                problems.invalid(path, label, ",".join(wrong))
                return


def _check_hints(hints: Mapping[str, Any], path: str, problems: Problems) -> None:
    for field in ("forZones", "forNodes"):
        targets, seen = hints.get(field) or (), set()
        if len(targets) > 8:
            problems.too_many(f"{path}.{field}", len(targets), 8)
            return
        for index, target in enumerate(targets):
            at, name = f"{path}.{field}[{index}].name", target.get("name", "")
            if name in seen:
                problems.duplicate(at, name)
            seen.add(name)
            wrong = label_value(name) if field == "forZones" else subdomain_name(name, False)
            problems.all_invalid(at, name, wrong)


def _validate_slice_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_slice(new, problems, old.get("endpoints"))
    problems.unchanged("addressType", new.get("addressType", ""), old.get("addressType", ""))


# Columns


def endpoint_slice_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an EndpointSlice."""
    ports = [str(port.get("port", port.get("name", "*"))) for port in value.get("ports") or ()]
    addresses = [address for part in value.get("endpoints") or () for address in part.get("addresses") or ()]
    return [
        value["metadata"].get("name", ""),
        value.get("addressType", ""),
        join_first_three(ports),
        join_first_three(addresses),
        age(value, now),
    ]


# Warnings


def endpoint_slice_warnings(endpoint_slice: Mapping[str, Any]) -> list[str]:
    """Return the warnings for a new EndpointSlice: the address type FQDN is deprecated."""
    warnings = []
    if endpoint_slice.get("addressType") == "FQDN":
        warnings.append("spec.addressType: FQDN endpoints are deprecated")
    return warnings + slice_address_warnings(endpoint_slice)


def slice_address_warnings(endpoint_slice: Mapping[str, Any]) -> list[str]:
    """Return the warnings for addresses in a format that will become invalid."""
    if is_managed_by(endpoint_slice, _SLICE_CONTROLLERS):
        return []
    return [
        warning
        for index, endpoint in enumerate(endpoint_slice.get("endpoints") or ())
        for warning in ip_list_warnings(f"endpoints[{index}].addresses", endpoint.get("addresses") or ())
    ]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "endpointslices.discovery.k8s.io": Kind(
        defaults={"v1": set_endpoint_slice_defaults},
        strategy=Strategy(
            generation_fields=(("addressType",), ("endpoints",), ("ports",), LABELS),
            has_generation=True,
            disabled_fields=(("endpoints", "*", "deprecatedTopology"),),
        ),
        rules=ValidationRules(_validate_slice, _validate_slice_update),
        cells=endpoint_slice_cells,
        warnings_on_create=endpoint_slice_warnings,
        warnings_on_update={"": create_warnings_on_update(slice_address_warnings)},
    ),
}
