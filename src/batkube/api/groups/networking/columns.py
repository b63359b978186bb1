"""Cells of Ingresses, NetworkPolicies, ServiceCIDRs and IPAddresses.

Kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import NONE, format_selector_or_none, load_balancer_addresses
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def ingress_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an Ingress."""
    spec = value.get("spec", {})
    return [
        value["metadata"].get("name", ""),
        spec.get("ingressClassName", NONE),
        _hosts_text([rule.get("host", "") for rule in spec.get("rules") or ()]),
        load_balancer_addresses(value.get("status", {})),
        "80, 443" if spec.get("tls") else "80",
        age(value, now),
    ]


def _hosts_text(hosts: list[str]) -> str:
    """Join the first three hosts; rules without a host count towards the total (Kubernetes: formatHosts)."""
    names: list[str] = []
    for host in hosts:
        if len(names) == 3:
            return f"{','.join(names)} + {len(hosts) - 3} more..."
        if host:
            names.append(host)
    return ",".join(names) or "*"


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
    pods = format_selector_or_none(value.get("spec", {}).get("podSelector"))
    return [value["metadata"].get("name", ""), pods, age(value, now)]


def service_cidr_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ServiceCIDR."""
    return [value["metadata"].get("name", ""), ",".join(value.get("spec", {}).get("cidrs") or ()), age(value, now)]


def ip_address_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an IPAddress: one more than there are columns, as in kube-apiserver."""
    parent = value.get("spec", {}).get("parentRef")
    text = NONE
    if parent is not None:
        group = parent.get("group", "")
        resource = f"{parent.get('resource', '')}.{group}".lower() if group else parent.get("resource", "").lower()
        text = "/".join((resource, *filter(None, (parent.get("namespace"),)), parent.get("name", "")))
    return [value["metadata"].get("name", ""), text, age(value, now)]
