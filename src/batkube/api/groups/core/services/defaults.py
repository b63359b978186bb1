"""Defaults of Services. Kubernetes: pkg/apis/core/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.defaults import TCP, Defaults, ensure_struct, fill_absent, fill_empty, list_items

_SERVICE_TYPE: Defaults = {"sessionAffinity": "None", "type": "ClusterIP"}
_AFFINITY_TIMEOUT_S = 10800
#: The types of services that have a cluster IP.
_TYPES_WITH_CLUSTER_IP = ("ClusterIP", "NodePort", "LoadBalancer")


def set_service_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of type, session affinity, ports and traffic policies."""
    spec = ensure_struct(obj, "spec")
    fill_empty(spec, _SERVICE_TYPE)
    kind = spec["type"]
    _set_session_affinity_defaults(spec)
    for port in list_items(spec, "ports"):
        fill_empty(port, TCP)
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if _is_externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in _TYPES_WITH_CLUSTER_IP:
        fill_absent(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        fill_absent(spec, {"allocateLoadBalancerNodePorts": True})
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        for ingress in list_items(balancer, "ingress"):
            if ingress.get("ip"):
                fill_absent(ingress, {"ipMode": "VIP"})


def _set_session_affinity_defaults(spec: dict[str, Any]) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_TIMEOUT_S}}


def _is_externally_accessible(spec: dict[str, Any]) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer") or (
        spec["type"] == "ClusterIP" and bool(spec.get("externalIPs"))
    )
