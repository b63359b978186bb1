"""Defaults of the core group, without pods. Kubernetes: pkg/apis/core/v1/defaults.go."""

from __future__ import annotations

import base64
from typing import Any

from batkube.api.groups.core.pods.defaults import fill_template
from batkube.api.groups.core.volumes.defaults import fill_claim_spec, fill_persistent_source
from batkube.api.groups.filling import Defaults, fill_absent, fill_empty, round_amounts, struct, structs

_TCP: Defaults = {"protocol": "TCP"}
_PENDING: Defaults = {"phase": "Pending"}
_SERVICE_TYPE: Defaults = {"sessionAffinity": "None", "type": "ClusterIP"}
_AFFINITY_S = 10800
#: Types of services that have an address within the cluster.
_IN_CLUSTER = ("ClusterIP", "NodePort", "LoadBalancer")
_METADATA_NAME = "kubernetes.io/metadata.name"


def service(obj: dict[str, Any]) -> None:
    """Type, affinity, ports and traffic policies of a service."""
    spec = struct(obj, "spec")
    fill_empty(spec, _SERVICE_TYPE)
    kind = spec["type"]
    _session_affinity(spec)
    for port in structs(spec, "ports"):
        fill_empty(port, _TCP)
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


def replication_controller(obj: dict[str, Any]) -> None:
    """One replica; selector and labels of the template."""
    spec = struct(obj, "spec")
    fill_absent(spec, {"replicas": 1})
    template = spec.get("template")
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = struct(obj, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    fill_template(template)


def pod_template(obj: dict[str, Any]) -> None:
    """A template on its own."""
    fill_template(struct(obj, "template"))


def persistent_volume(obj: dict[str, Any]) -> None:
    """Phase, reclaim policy, mode and source of a volume."""
    fill_empty(struct(obj, "status"), _PENDING)
    spec = struct(obj, "spec")
    fill_empty(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    fill_absent(spec, {"volumeMode": "Filesystem"})
    round_amounts(spec, "capacity")
    fill_persistent_source(spec)


def persistent_volume_claim(obj: dict[str, Any]) -> None:
    """Phase and mode of a claim."""
    status = struct(obj, "status")
    fill_empty(status, _PENDING)
    round_amounts(status, "capacity", "allocatedResources")
    fill_claim_spec(obj)


def secret(obj: dict[str, Any]) -> None:
    """The type of a secret; its plain texts become data and are never stored."""
    fill_empty(obj, {"type": "Opaque"})
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def endpoints(obj: dict[str, Any]) -> None:
    """The protocol of every port."""
    for subset in structs(obj, "subsets"):
        for port in structs(subset, "ports"):
            fill_empty(port, _TCP)


def namespace(obj: dict[str, Any]) -> None:
    """The phase, and the label by which selectors name a namespace; one without a name yet gets it later."""
    name = (obj.get("metadata") or {}).get("name")
    if name:
        struct(obj["metadata"], "labels")[_METADATA_NAME] = name
    fill_empty(struct(obj, "status"), {"phase": "Active"})


def node(obj: dict[str, Any]) -> None:
    """What can be allocated is the capacity; `podCIDR` is the first of `podCIDRs`."""
    status = struct(obj, "status")
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    round_amounts(status, "capacity", "allocatable")
    spec = obj.get("spec") or {}
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and not (ranges and ranges[0] == first):
        spec["podCIDRs"] = [first]
    elif ranges and not first:
        spec["podCIDR"] = ranges[0]


def limit_range(obj: dict[str, Any]) -> None:
    """Limits of containers: the default is the maximum, the default request the default or the minimum."""
    for item in structs(obj.get("spec") or {}, "limits"):
        if item.get("type") == "Container":
            default = {**(item.get("max") or {}), **(item.get("default") or {})}
            request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
            if default:
                item["default"] = default
            if request:
                item["defaultRequest"] = request
        round_amounts(item, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def resource_quota(obj: dict[str, Any]) -> None:
    """Amounts in thousandths at the finest."""
    round_amounts(obj.get("spec") or {}, "hard")
    round_amounts(obj.get("status") or {}, "hard", "used")
