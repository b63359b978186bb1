"""What `kubectl get` prints of services, endpoints, ingresses and addresses.

Kubernetes: pkg/printers/internalversion/printers.go. Tables are always made wide (`kubectl` hides what it does not
want), so addresses of load balancers are never cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.printing.ages import UNKNOWN, age
from batkube.api.printing.texts import NONE, cut, first_three, joined_addresses, labels, selector_or_none
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def service_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Service."""
    spec = value.get("spec", {})
    cluster_ips = spec.get("clusterIPs") or (NONE,)
    return [
        value["metadata"].get("name", ""),
        spec.get("type", ""),
        cluster_ips[0],
        _external_address(spec, value.get("status", {})),
        ",".join(_port_text(port) for port in spec.get("ports") or ()) or NONE,
        age(value, now),
        labels(spec.get("selector")),
    ]


def _external_address(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    external = ",".join(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return external or NONE
        case "LoadBalancer":
            return ",".join(filter(None, (joined_addresses(status), external))) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _port_text(port: Mapping[str, Any]) -> str:
    number, node_port, protocol = port.get("port", 0), port.get("nodePort", 0), port.get("protocol", "")
    return f"{number}:{node_port}/{protocol}" if node_port > 0 else f"{number}/{protocol}"


def endpoints_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an Endpoints object."""
    subsets = value.get("subsets") or ()
    text = cut([address for subset in subsets for address in _subset_addresses(subset)], 3) if subsets else NONE
    return [value["metadata"].get("name", ""), text, age(value, now)]


def _subset_addresses(subset: Mapping[str, Any]) -> list[str]:
    hosts = [address.get("ip", "") for address in subset.get("addresses") or ()]
    ports = subset.get("ports")
    # A headless service may have no ports.
    return [_host_port(host, port.get("port", 0)) for port in ports for host in hosts] if ports else hosts


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_slice_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an EndpointSlice."""
    ports = [str(port.get("port", port.get("name", "*"))) for port in value.get("ports") or ()]
    addresses = [address for part in value.get("endpoints") or () for address in part.get("addresses") or ()]
    return [
        value["metadata"].get("name", ""),
        value.get("addressType", ""),
        first_three(ports),
        first_three(addresses),
        age(value, now),
    ]


def ingress_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an Ingress."""
    spec = value.get("spec", {})
    return [
        value["metadata"].get("name", ""),
        spec.get("ingressClassName", NONE),
        _hosts_text([rule.get("host", "") for rule in spec.get("rules") or ()]),
        joined_addresses(value.get("status", {})),
        "80, 443" if spec.get("tls") else "80",
        age(value, now),
    ]


def _hosts_text(hosts: list[str]) -> str:
    """Return the first three hosts; rules without one count among those left out (Kubernetes: formatHosts)."""
    shown: list[str] = []
    for host in hosts:
        if len(shown) == 3:
            return f"{','.join(shown)} + {len(hosts) - 3} more..."
        if host:
            shown.append(host)
    return ",".join(shown) or "*"


def ingress_class_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an IngressClass."""
    spec = value.get("spec", {})
    parameters, text = spec.get("parameters"), NONE
    if parameters is not None:
        group = parameters.get("apiGroup")
        kind = parameters.get("kind", "") if group is None else f"{parameters.get('kind', '')}.{group}"
        text = f"{kind}/{parameters.get('name', '')}"
    return [value["metadata"].get("name", ""), spec.get("controller", ""), text, age(value, now)]


def network_policy_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a NetworkPolicy."""
    pods = selector_or_none(value.get("spec", {}).get("podSelector"))
    return [value["metadata"].get("name", ""), pods, age(value, now)]


def service_cidr_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ServiceCIDR."""
    return [value["metadata"].get("name", ""), ",".join(value.get("spec", {}).get("cidrs") or ()), age(value, now)]


def ip_address_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an IPAddress: one more than it has columns, as in the original."""
    parent = value.get("spec", {}).get("parentRef")
    text = NONE
    if parent is not None:
        group = parent.get("group", "")
        resource = f"{parent.get('resource', '')}.{group}".lower() if group else parent.get("resource", "").lower()
        text = "/".join((resource, *filter(None, (parent.get("namespace"),)), parent.get("name", "")))
    return [value["metadata"].get("name", ""), text, age(value, now)]
