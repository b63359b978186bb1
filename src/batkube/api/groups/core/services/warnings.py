"""Warnings about Services. Kubernetes: pkg/api/service/warnings.go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.address_warnings import cidr_list_warnings, ip_list_warnings, ip_warnings

_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"


def service_warnings(service: Mapping[str, Any]) -> list[str]:
    """Return the warnings about a Service: fields without effect, deprecated formats of addresses."""
    spec, warnings = service["spec"], []
    kind, external = spec.get("type"), spec.get("externalIPs") or ()
    if _TOPOLOGY_HINTS in (service["metadata"].get("annotations") or {}):
        warnings.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    if spec.get("clusterIP") not in (None, "", "None"):
        warnings += ip_list_warnings("spec.clusterIPs", spec.get("clusterIPs") or ())
    if kind == "ClusterIP" and spec.get("clusterIP") == "None":
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": external,
            "SessionAffinity": spec.get("sessionAffinity") != "None",
        }
        warnings += [f"spec.{field} is ignored for headless services" for field, value in ignored.items() if value]
    warnings += ip_list_warnings("spec.externalIPs", external)
    if spec.get("loadBalancerIP"):
        warnings += ip_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    warnings += cidr_list_warnings("spec.loadBalancerSourceRanges", spec.get("loadBalancerSourceRanges") or ())
    if kind == "ExternalName" and external:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return warnings


def load_balancer_warnings(value: Mapping[str, Any]) -> list[str]:
    """Return the warnings about load balancer addresses in the status of a Service or an Ingress."""
    entries = ((value.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return ip_list_warnings("status.loadBalancer.ingress", [entry.get("ip", "") for entry in entries])
