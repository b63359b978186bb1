"""Strategy of Services: fields that depend on the type, and allocation of cluster IPs and node ports.

Cluster IPs come from one IPv4 range and node ports from another. The lowest free value is allocated, where
kube-apiserver picks a random one, so that runs are reproducible; the values in use are those of the stored services.

Kubernetes: pkg/registry/core/service/{strategy.go,storage}.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from batkube.api.groups.core.services.cluster_ips import check_cluster_ips
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.requests import statuses
from batkube.api.requests.statuses import Failure
from batkube.api.validation.field_errors import FieldError, invalid
from batkube.api.validation.problems import Problems
from batkube.cluster.store import Store

#: The service CIDR, that of kubeadm; its first address belongs to the service `kubernetes`.
CLUSTER_RANGE = ipaddress.IPv4Network("10.96.0.0/12")
#: The lowest addresses are reserved for static allocation (ipallocator: calculateRangeOffset).
_RESERVED_ADDRESSES = 256
NODE_PORTS = range(30000, 32768)

_HEADLESS = "None"
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_OTHER_FAMILY = {"IPv4": "IPv6", "IPv6": "IPv4"}


def prepare_service_create(service: dict[str, Any], context: StrategyContext) -> None:
    """Allocate the addresses and ports of a new service."""
    spec = service["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _set_ip_families(service, None)
    _allocate_addresses(service, context.store)
    if spec["type"] in _WITH_NODE_PORTS:
        _allocate_node_ports(service, [], context.store)
    if _needs_health_check_port(spec):
        _allocate_health_check_port(service, context.store)
    _drop_internal_traffic_policy(spec)


def prepare_service_update(service: dict[str, Any], old: dict[str, Any], context: StrategyContext) -> None:
    """Keep allocated values that the type still needs, allocate missing ones, and drop the others."""
    spec, before = service["spec"], old["spec"]
    _patch_allocated_values(spec, before)
    _normalize_cluster_ips(spec, before)
    _set_ip_families(service, old)
    if before["type"] == "ExternalName":
        _allocate_addresses(service, context.store)
    if spec["type"] in _WITH_NODE_PORTS:
        _allocate_node_ports(service, _node_ports(before), context.store)
    if _needs_health_check_port(spec) and not _needs_health_check_port(before):
        _allocate_health_check_port(service, context.store)
    _drop_type_dependent_fields(spec, before)
    if spec["type"] != "LoadBalancer" and (service.get("status") or {}).get("loadBalancer"):
        service["status"] = {**service["status"], "loadBalancer": {}}
    _drop_internal_traffic_policy(spec)


# Addresses


def _set_ip_families(service: dict[str, Any], old: dict[str, Any] | None) -> None:
    """Set the family policy and the IP families; the cluster is IPv4 only (initIPFamilyFields)."""
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    headless = spec.get("clusterIP") == _HEADLESS and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        old_policy = (old or {}).get("spec", {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = old_policy or ("RequireDualStack" if headless else "SingleStack")
    problems = Problems()
    check_cluster_ips(spec, (old or {}).get("spec", {}), problems)
    if problems:
        raise _invalid_service(service, problems)
    families = _requested_families(service)
    dual = spec["ipFamilyPolicy"] != "SingleStack"
    if headless:
        families = families or ["IPv4"]
        if len(families) == 1 and dual:
            families.append(_OTHER_FAMILY.get(families[0], "IPv4"))
    else:
        _reject_other_families(service, families)
    spec["ipFamilies"] = families or ["IPv4"]


def _requested_families(service: dict[str, Any]) -> list[str]:
    """Return the families that a service requests, explicitly or by its addresses."""
    spec = service["spec"]
    families = list(spec.get("ipFamilies") or ())
    addresses = spec.get("clusterIPs") or ()
    problems = []
    for number, address in enumerate(addresses):
        family = _ip_family(address)
        if address == _HEADLESS or not family:
            break
        if number >= len(families):
            families.append(family)
            if family == "IPv6":
                text = f"{family} is not configured on this cluster"
                problems.append(invalid(f"spec.clusterIPs[{number}]", addresses, text))
    if problems:
        raise _invalid_service(service, problems)
    return families


def _reject_other_families(service: dict[str, Any], families: list[str]) -> None:
    spec = service["spec"]
    problems = []
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        problems.append(invalid("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], text))
    for number, family in enumerate(families):
        if family == "IPv6":
            problems.append(invalid(f"spec.ipFamilies[{number}]", family, "not configured on this cluster"))
    if problems:
        raise _invalid_service(service, problems)


def _allocate_addresses(service: dict[str, Any], store: Store) -> None:
    """Allocate cluster IPs, or reserve those that the service requests."""
    spec = service["spec"]
    addresses = spec.get("clusterIPs") or []
    if spec["type"] == "ExternalName" or (addresses and addresses[0] == _HEADLESS):
        return
    if addresses:
        for address in addresses:
            _check_address(service, address, store)
    else:
        addresses = [_free_address(store)]
    spec["clusterIPs"], spec["clusterIP"] = addresses, addresses[0]


def _check_address(service: dict[str, Any], address: str, store: Store) -> None:
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError:
        return  # validation reports the error
    problem = ""
    ends = (CLUSTER_RANGE.network_address, CLUSTER_RANGE.broadcast_address)
    if parsed not in CLUSTER_RANGE or parsed in ends:
        problem = "the provided network does not match the current range"
    elif address in _allocated_addresses(store):
        problem = "provided IP is already allocated"
    if problem:
        text = f"failed to allocate IP {address}: {problem}"
        raise _invalid_service(service, [invalid("spec.clusterIPs", service["spec"]["clusterIPs"], text)])


def _free_address(store: Store) -> str:
    taken = _allocated_addresses(store)
    for reserved in (False, True):
        for number in range(1, CLUSTER_RANGE.num_addresses - 1):
            address = str(CLUSTER_RANGE[number])
            if (number <= _RESERVED_ADDRESSES) is reserved and address not in taken:
                return address
    raise statuses.internal("failed to allocate a serviceIP: range is full")


def _allocated_addresses(store: Store) -> frozenset[str]:
    return frozenset(address for spec in _service_specs(store) for address in spec.get("clusterIPs") or ())


def _service_specs(store: Store) -> Iterator[dict[str, Any]]:
    for service in store.all("services").values():
        yield service["spec"]


def _ip_family(address: str) -> str:
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return ""


# Ports


def _node_ports(spec: dict[str, Any]) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def _allocate_node_ports(service: dict[str, Any], own: list[int], store: Store) -> None:
    """Allocate node ports; the same port number with different protocols shares one."""
    spec = service["spec"]
    allocates = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
    requested: dict[int, int] = {}
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            requested.setdefault(port.get("port", 0), port["nodePort"])
    taken = _allocated_ports(store)
    granted = list(own)
    pairs: list[tuple[int, str]] = []
    for index, port in enumerate(spec.get("ports") or ()):
        if not port.get("nodePort") and not allocates:
            continue
        number = port.get("nodePort") or (requested.get(port.get("port", 0), 0) if not own else 0)
        if not number:
            number = _free_port(taken, granted)
            requested.setdefault(port.get("port", 0), number)
        elif number not in granted or (number, port.get("protocol", "")) in pairs:
            _check_port(service, index, number, taken.union(granted))
        port["nodePort"] = number
        granted.append(number)
        if not own:
            pairs.append((number, port.get("protocol", "")))


def _allocate_health_check_port(service: dict[str, Any], store: Store) -> None:
    spec = service["spec"]
    taken = _allocated_ports(store)
    port = spec.get("healthCheckNodePort")
    if port:
        problem = _port_problem(port, taken)
        if problem:
            text = f"failed to allocate requested HealthCheck NodePort {port}: {problem}"
            raise statuses.internal(text)
    else:
        spec["healthCheckNodePort"] = _free_port(taken, _node_ports(spec))


def _check_port(service: dict[str, Any], index: int, number: int, taken: frozenset[int]) -> None:
    problem = _port_problem(number, taken)
    if problem:
        raise _invalid_service(service, [invalid(f"spec.ports[{index}].nodePort", number, problem)])


def _port_problem(number: int, taken: frozenset[int]) -> str:
    if number not in NODE_PORTS:
        bounds = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
        return f"provided port is not in the valid range. The range of valid ports is {bounds}"
    return "provided port is already allocated" if number in taken else ""


def _free_port(taken: frozenset[int], granted: list[int]) -> int:
    for number in NODE_PORTS:
        if number not in taken and number not in granted:
            return number
    raise statuses.internal("failed to allocate a nodePort: range is full")


def _allocated_ports(store: Store) -> frozenset[int]:
    ports = [port for spec in _service_specs(store) for port in _node_ports(spec)]
    return frozenset(
        [*ports, *(spec["healthCheckNodePort"] for spec in _service_specs(store) if _needs_health_check_port(spec))]
    )


def _needs_health_check_port(spec: dict[str, Any]) -> bool:
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


# Changes of type


def _patch_allocated_values(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Keep allocated values that the update omits while the type still needs them (patchAllocatedValues)."""
    if spec["type"] != "ExternalName" and before["type"] != "ExternalName":
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    if spec["type"] in _WITH_NODE_PORTS and before["type"] in _WITH_NODE_PORTS:
        node_ports = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        used = [number for number in _node_ports(before) if number in _node_ports(spec)]
        for port in spec.get("ports") or ():
            number = node_ports.get(port.get("name", ""), 0)
            if not port.get("nodePort") and number and number not in used:
                port["nodePort"] = number
    if _needs_health_check_port(spec) and _needs_health_check_port(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before["healthCheckNodePort"]


def _normalize_cluster_ips(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Update `clusterIPs` after a change of `clusterIP` (normalizeClusterIPs)."""
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        else:
            spec.pop("clusterIPs", None)


def _drop_type_dependent_fields(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Drop unchanged values that only the old type uses (dropTypeDependentFields)."""
    old_type = before["type"]
    if old_type != "ExternalName" and spec["type"] == "ExternalName":
        if all(spec.get(name) == before.get(name) for name in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_unchanged(spec, before, "ipFamilies", "ipFamilyPolicy")
    if old_type in _WITH_NODE_PORTS and spec["type"] not in _WITH_NODE_PORTS:
        live = _node_ports(before)
        if all(number in live for number in _node_ports(spec)):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if _needs_health_check_port(before) and not _needs_health_check_port(spec):
        _drop_unchanged(spec, before, "healthCheckNodePort")
    if old_type == "LoadBalancer" and spec["type"] != "LoadBalancer":
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if _is_externally_reachable(before) and not _is_externally_reachable(spec):
        _drop_unchanged(spec, before, "externalTrafficPolicy")


def _drop_internal_traffic_policy(spec: dict[str, Any]) -> None:
    """Drop the internal traffic policy of an ExternalName service (defaultOnReadInternalTrafficPolicy)."""
    if spec["type"] == "ExternalName":
        spec.pop("internalTrafficPolicy", None)


def _drop_unchanged(spec: dict[str, Any], before: dict[str, Any], *names: str) -> None:
    for name in names:
        if spec.get(name) == before.get(name):
            spec.pop(name, None)


def _is_externally_reachable(spec: dict[str, Any]) -> bool:
    """Return whether the service can be reached from outside the cluster."""
    return spec["type"] in _WITH_NODE_PORTS or (spec["type"] == "ClusterIP" and bool(spec.get("externalIPs")))


def _invalid_service(service: dict[str, Any], problems: list[FieldError]) -> Failure:
    name = service["metadata"].get("name", "")
    messages = [f"{problem.field}: {problem.message}" for problem in problems]
    text = messages[0] if len(messages) == 1 else "[" + ", ".join(messages) + "]"
    causes = [{"reason": problem.reason, "message": problem.message, "field": problem.field} for problem in problems]
    details = {"name": name, "kind": "Service", "causes": causes}
    return Failure(422, "Invalid", f'Service "{name}" is invalid: {text}', details)
