"""Endpoints and endpoint slices (Kubernetes: pkg/apis/core/validation and pkg/apis/discovery/validation)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.checks.addresses import check_endpoint_ip, check_ip, check_strict_ip, is_ipv6
from batkube.api.checks.metadata import check_built_in_metadata, check_labels
from batkube.api.checks.names import (
    dns_label,
    dns_subdomain,
    label_value,
    port_number,
    qualified_name,
    subdomain_name,
)
from batkube.api.checks.problems import Problems
from batkube.api.checks.rules import Object, Rules, metadata_update

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


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
    _check_protocol(port, path, problems)


def _check_protocol(port: Mapping[str, Any], path: str, problems: Problems) -> None:
    if (protocol := port.get("protocol")) is None:
        problems.required(f"{path}.protocol")
    elif protocol not in _PROTOCOLS:
        problems.not_supported(f"{path}.protocol", protocol, _PROTOCOLS)
    if (application := port.get("appProtocol")) is not None:
        problems.all_invalid(f"{path}.appProtocol", application, qualified_name(application))


def _endpoints(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_subsets(value.get("subsets") or (), problems)


def _update_endpoints(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    check_built_in_metadata(new["metadata"], subdomain_name, True, problems)
    if (new.get("subsets") or ()) != (old.get("subsets") or ()):
        _check_subsets(new.get("subsets") or (), problems)


def _slice(value: Object, problems: Problems, before: object = None) -> None:
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
        _check_protocol(port, path, problems)


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


def _update_slice(new: Object, old: Object, problems: Problems) -> None:
    _slice(new, problems, old.get("endpoints"))
    problems.unchanged("addressType", new.get("addressType", ""), old.get("addressType", ""))


RULES = {
    "endpoints": Rules(_endpoints, _update_endpoints),
    "endpointslices.discovery.k8s.io": Rules(_slice, _update_slice),
}
