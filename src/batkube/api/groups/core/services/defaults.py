"""Defaults of services. Kubernetes: pkg/apis/core/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.filling import TCP, Defaults, fill_absent, fill_empty, struct, structs

_SERVICE_TYPE: Defaults = {"sessionAffinity": "None", "type": "ClusterIP"}
_AFFINITY_S = 10800
#: Types of services that have an address within the cluster.
_IN_CLUSTER = ("ClusterIP", "NodePort", "LoadBalancer")


def fill_service(obj: dict[str, Any]) -> None:
    """Type, affinity, ports and traffic policies of a service."""
    spec = struct(obj, "spec")
    fill_empty(spec, _SERVICE_TYPE)
    kind = spec["type"]
    _session_affinity(spec)
    for port in structs(spec, "ports"):
        fill_empty(port, TCP)
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if _externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in _IN_CLUSTER:
        fill_absent(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        fill_absent(spec, {"allocateLoadBalancerNodePorts": True})
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        for ingress in structs(balancer, "ingress"):
            if ingress.get("ip"):
                fill_absent(ingress, {"ipMode": "VIP"})


def _session_affinity(spec: dict[str, Any]) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_S}}


def _externally_accessible(spec: dict[str, Any]) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer") or (
        spec["type"] == "ClusterIP" and bool(spec.get("externalIPs"))
    )
