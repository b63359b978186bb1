"""Defaults of the smaller groups: networking, discovery, storage, devices, access, scheduling, webhooks, flow control.

Kubernetes: pkg/apis/GROUP/v1/defaults.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.volumes.defaults import fill_persistent_source
from batkube.api.groups.filling import Defaults, fill_absent, fill_empty, struct, structs

_RBAC = "rbac.authorization.k8s.io"
_ENDPOINT_PORT: Defaults = {"name": "", "protocol": "TCP"}
_STORAGE_CLASS: Defaults = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_CSI_DRIVER: Defaults = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}
_WEBHOOK: Defaults = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
_EXEMPT: Defaults = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
_LIMITED: Defaults = {"nominalConcurrencyShares": 30, "lendablePercent": 0}
_QUEUING: Defaults = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


# networking.k8s.io, discovery.k8s.io


def api_service(obj: dict[str, Any]) -> None:
    """A server that is asked for a group listens where servers do."""
    service = struct(obj, "spec").get("service")
    if service is not None:
        service.setdefault("port", 443)


def network_policy(obj: dict[str, Any]) -> None:
    """A policy is about incoming traffic, and about outgoing if it says anything about it; ports are TCP."""
    spec = struct(obj, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in structs(spec, direction):
            for port in structs(rule, "ports"):
                fill_absent(port, {"protocol": "TCP"})


def ingress_class(obj: dict[str, Any]) -> None:
    """Parameters of an ingress class are of the whole cluster."""
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        fill_absent(parameters, {"scope": "Cluster"})


def endpoint_slice(obj: dict[str, Any]) -> None:
    """Name and protocol of every port."""
    for port in structs(obj, "ports"):
        fill_absent(port, _ENDPOINT_PORT)


# storage.k8s.io


def storage_class(obj: dict[str, Any]) -> None:
    """Volumes are bound at once and deleted with their claim."""
    fill_absent(obj, _STORAGE_CLASS)


def csi_driver(obj: dict[str, Any]) -> None:
    """What a driver can do unless it says otherwise."""
    spec = struct(obj, "spec")
    fill_absent(spec, _CSI_DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def volume_attachment(obj: dict[str, Any]) -> None:
    """The volume given in place has the defaults of any."""
    source = (obj.get("spec") or {}).get("source") or {}
    if source.get("inlineVolumeSpec") is not None:
        fill_persistent_source(source["inlineVolumeSpec"])


# resource.k8s.io


def resource_claim(obj: dict[str, Any]) -> None:
    """One device for each request."""
    _devices(obj.get("spec") or {})
    allocation = (obj.get("status") or {}).get("allocation") or {}
    for result in structs(allocation.get("devices") or {}, "results"):
        _device_tolerations(result)


def resource_claim_template(obj: dict[str, Any]) -> None:
    """What the claims will have."""
    _devices((obj.get("spec") or {}).get("spec") or {})


def _devices(spec: dict[str, Any]) -> None:
    for request in structs(spec.get("devices") or {}, "requests"):
        alternatives = list(structs(request, "firstAvailable"))
        if request.get("exactly") is not None:
            alternatives.append(request["exactly"])
        for alternative in alternatives:
            fill_empty(alternative, {"allocationMode": "ExactCount"})
            if alternative["allocationMode"] == "ExactCount":
                fill_empty(alternative, {"count": 1})
            _device_tolerations(alternative)


def _device_tolerations(holder: dict[str, Any]) -> None:
    for toleration in structs(holder, "tolerations"):
        fill_empty(toleration, {"operator": "Equal"})


# rbac.authorization.k8s.io, scheduling.k8s.io


def role_binding(obj: dict[str, Any]) -> None:
    """Roles, users and groups are of this group; service accounts of the core group."""
    fill_empty(struct(obj, "roleRef"), {"apiGroup": _RBAC})
    for subject in structs(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill_empty(subject, {"apiGroup": _RBAC})


def priority_class(obj: dict[str, Any]) -> None:
    """Pods of a class preempt lower ones."""
    fill_absent(obj, {"preemptionPolicy": "PreemptLowerPriority"})


# admissionregistration.k8s.io


def validating_webhooks(obj: dict[str, Any]) -> None:
    """Everything matches, failures refuse."""
    for webhook in structs(obj, "webhooks"):
        fill_absent(webhook, _WEBHOOK)
        _selectors(webhook)
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            fill_absent(service, {"port": 443})
        _rules(webhook, "rules")


def mutating_webhooks(obj: dict[str, Any]) -> None:
    """Fill what a validating webhook has; a mutating one is not called again after others changed the object."""
    validating_webhooks(obj)
    for webhook in structs(obj, "webhooks"):
        fill_absent(webhook, {"reinvocationPolicy": "Never"})


def admission_policy(obj: dict[str, Any]) -> None:
    """A policy that cannot be evaluated refuses the request, unless it says that such failures are to be ignored."""
    spec = struct(obj, "spec")
    fill_absent(spec, {"failurePolicy": "Fail"})
    _match_resources(spec.get("matchConstraints"))


def admission_policy_binding(obj: dict[str, Any]) -> None:
    """A binding matches equivalent versions of a resource, in all scopes, unless it says otherwise."""
    _match_resources((obj.get("spec") or {}).get("matchResources"))


def _match_resources(match: dict[str, Any] | None) -> None:
    if match is not None:
        fill_absent(match, {"matchPolicy": "Equivalent"})
        _selectors(match)
        _rules(match, "resourceRules", "excludeResourceRules")


def _selectors(holder: dict[str, Any]) -> None:
    struct(holder, "namespaceSelector")
    struct(holder, "objectSelector")


def _rules(holder: dict[str, Any], *names: str) -> None:
    for name in names:
        for rule in structs(holder, name):
            fill_absent(rule, {"scope": "*"})


# flowcontrol.apiserver.k8s.io


def flow_schema(obj: dict[str, Any]) -> None:
    """A flow schema without precedence is asked late, after those that say how early they come."""
    fill_empty(struct(obj, "spec"), {"matchingPrecedence": 1000})


def priority_level(obj: dict[str, Any]) -> None:
    """A priority level has a share of the server's seats and queues to wait in, even if it says neither."""
    spec = obj.get("spec") or {}
    if spec.get("exempt") is not None:
        fill_absent(spec["exempt"], _EXEMPT)
    limited = spec.get("limited")
    if limited is not None:
        fill_absent(limited, _LIMITED)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            fill_empty(queuing, _QUEUING)
