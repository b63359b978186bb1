"""Compute the quota usage of objects: the count of their kind and, for some kinds, resources.

Kubernetes: pkg/quota/v1/evaluator/core, apiserver/pkg/quota/v1/generic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from batkube.api.groups.core.pods.resource_totals import PodResourceAmounts, total_pod_resources
from batkube.api.groups.core.pods.strategy import qos_class
from batkube.cluster.kinds import KindTable, Resource
from batkube.kernel.quantities import Quantity, parse_quantity

ONE = parse_quantity(1)
_CLASS_INFIX = ".storageclass.storage.k8s.io/"
_HUGE_PAGES = "hugepages-"
#: Kinds that quotas count by their plain name as well as by `count/NAME`.
_COUNTED_WITHOUT_PREFIX = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
_COMPUTE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
#: Resources that every container must specify if a quota limits them.
REQUIRED_AMOUNTS = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
_POD_NAMES = (
    "count/pods",
    "pods",
    *_COMPUTE_RESOURCES,
    *(f"requests.{name}" for name in _COMPUTE_RESOURCES),
    *(f"limits.{name}" for name in _COMPUTE_RESOURCES),
)
_SERVICE_NAMES = ("count/services", "services", "services.nodeports", "services.loadbalancers")
_CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")


def count_name(resource: Resource) -> str:
    """Return the quota resource that counts objects of a kind: `count/pods`, `count/deployments.apps`."""
    return f"count/{resource.group_resource}"


def counts_towards(resource: Resource, name: str) -> bool:
    """Return whether objects of this kind can use the quota resource `name`."""
    storage = resource.storage
    if storage == "pods":
        return (
            name in _POD_NAMES
            or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
            or (name.startswith("requests.") and "/" in name and not _is_native(name))
        )
    if storage == "services":
        return name in _SERVICE_NAMES
    if storage == "persistentvolumeclaims":
        by_class = name.endswith(tuple(_CLASS_INFIX + each for each in _CLAIM_NAMES))
        return name == count_name(resource) or name in _CLAIM_NAMES or by_class
    if storage == "resourceclaims.resource.k8s.io":
        return name == count_name(resource) or name.endswith(".deviceclass.resource.k8s.io/devices")
    return name == count_name(resource) or (storage in _COUNTED_WITHOUT_PREFIX and name == storage)


def usage_of(resource: Resource, value: Mapping[str, Any]) -> PodResourceAmounts:
    """Return the quota usage of an object."""
    calculate = _USAGE.get(resource.storage)
    used = {count_name(resource): ONE}
    if calculate is not None:
        used.update(calculate(value))
    elif resource.storage in _COUNTED_WITHOUT_PREFIX:
        used[resource.storage] = ONE
    return used


def _pod_usage(pod: Mapping[str, Any]) -> PodResourceAmounts:
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return {}
    spec = pod["spec"]
    return compute_usage(total_pod_resources(spec, "requests"), total_pod_resources(spec, "limits"))


def compute_usage(requests: PodResourceAmounts, limits: PodResourceAmounts) -> PodResourceAmounts:
    """Return the requests and limits of a pod or container under their quota resource names."""
    used: PodResourceAmounts = {"pods": ONE}
    for name in _COMPUTE_RESOURCES:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith(_HUGE_PAGES):
            used[name] = used[f"requests.{name}"] = amount
        elif "/" in name and not _is_native(name):
            used[f"requests.{name}"] = amount
    return used


def _is_native(name: str) -> bool:
    return "kubernetes.io/" in name


def _service_usage(service: Mapping[str, Any]) -> PodResourceAmounts:
    spec = service["spec"]
    ports = spec.get("ports") or ()
    balanced = spec.get("type") == "LoadBalancer"
    count = 0
    if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        count = sum(1 for port in ports if port.get("nodePort"))
    elif balanced or spec.get("type") == "NodePort":
        count = len(ports)
    return {
        "services": ONE,
        "services.nodeports": parse_quantity(count),
        "services.loadbalancers": parse_quantity(int(balanced)),
    }


def _claim_usage(claim: Mapping[str, Any]) -> PodResourceAmounts:
    used: PodResourceAmounts = {"persistentvolumeclaims": ONE}
    spec = claim["spec"]
    text = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if text is not None:
        storage = parse_quantity(text)
        used["requests.storage"] = Quantity(storage.value * ONE.nanos, storage.format)
    storage_class = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    storage_class = storage_class or spec.get("storageClassName")
    if storage_class:
        used.update({f"{storage_class}{_CLASS_INFIX}{name}": amount for name, amount in list(used.items())})
    return used


def _device_usage(claim: Mapping[str, Any]) -> PodResourceAmounts:
    used: PodResourceAmounts = {}
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        alternatives = [request["exactly"]] if request.get("exactly") else request.get("firstAvailable") or ()
        maximum: PodResourceAmounts = {}
        for each in alternatives:
            name = f"{each.get('deviceClassName', '')}.deviceclass.resource.k8s.io/devices"
            # allocationMode All is charged with the maximal number of devices of a claim
            # (Kubernetes: resource.AllocationResultsMaxSize).
            count = 32 if each.get("allocationMode") == "All" else each.get("count", 0)
            maximum[name] = max(maximum.get(name, Quantity(0)), parse_quantity(count))
        for name, amount in maximum.items():
            used[name] = used[name] + amount if name in used else amount
    return used


_USAGE: Mapping[str, Callable[[Mapping[str, Any]], PodResourceAmounts]] = {
    "persistentvolumeclaims": _claim_usage,
    "pods": _pod_usage,
    "resourceclaims.resource.k8s.io": _device_usage,
    "services": _service_usage,
}


# Scopes: quotas that apply to some objects only


def is_terminating(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod matches the quota scope Terminating: it has an activeDeadlineSeconds."""
    deadline = pod["spec"].get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def matches_scopes(resource: Resource, value: Mapping[str, Any], quota: Mapping[str, Any]) -> bool:
    """Return whether an object matches all scopes of `quota`."""
    spec = quota["spec"]
    requirements = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    requirements += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_matches_scope_selector(resource, value, requirement) for requirement in requirements)


def _matches_scope_selector(resource: Resource, value: Mapping[str, Any], requirement: Mapping[str, Any]) -> bool:
    scope = requirement.get("scopeName")
    if resource.storage == "persistentvolumeclaims" and scope == "VolumeAttributesClass":
        return _requirement_matches(requirement, _attribute_classes(value))
    if resource.storage != "pods":
        return False
    spec = value["spec"]
    if scope == "PriorityClass":
        return _requirement_matches(requirement, [spec["priorityClassName"]] if spec.get("priorityClassName") else [])
    matches = _POD_SCOPES.get(scope or "")
    return matches is not None and matches(value)


def _requirement_matches(requirement: Mapping[str, Any], names: list[str]) -> bool:
    """Return whether `names` satisfy a requirement, with the operators of label selectors."""
    values = requirement.get("values") or ()
    operator = requirement.get("operator")
    if operator == "Exists":
        return bool(names)
    if operator == "DoesNotExist":
        return not names
    if operator == "In":
        return any(name in values for name in names)
    return not names or any(name not in values for name in names)


def _attribute_classes(claim: Mapping[str, Any]) -> list[str]:
    status = claim.get("status") or {}
    names = (
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return [name for name in names if name]


def _is_best_effort(pod: Mapping[str, Any]) -> bool:
    return ((pod.get("status") or {}).get("qosClass") or qos_class(pod["spec"])) == "BestEffort"


def _has_cross_namespace_affinity(pod: Mapping[str, Any]) -> bool:
    """Return whether an affinity term of the pod selects namespaces."""
    affinity = pod["spec"].get("affinity") or {}
    return any(
        term.get("namespaces") or term.get("namespaceSelector") is not None
        for name in ("podAffinity", "podAntiAffinity")
        for term in _affinity_terms(affinity.get(name) or {})
    )


def _affinity_terms(affinity: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    weighted = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return [*(each.get("podAffinityTerm") or {} for each in weighted), *required]


_POD_SCOPES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda pod: not _is_best_effort(pod),
    "CrossNamespacePodAffinity": _has_cross_namespace_affinity,
    "Terminating": is_terminating,
    "NotTerminating": lambda pod: not is_terminating(pod),
}


def quota_usage_calculator() -> Callable[[str, dict[str, Any], dict[str, Any]], dict[str, Quantity]]:
    """Return a function that computes usage as admission does; the quota controller uses it to recalculate quotas."""
    resources = {resource.storage: resource for resource in KindTable.builtin().resources()}

    def usage(storage: str, obj: dict[str, Any], quota: dict[str, Any]) -> dict[str, Quantity]:
        resource = resources.get(storage)
        if resource is None:
            return {f"count/{storage}": ONE}
        return usage_of(resource, obj) if matches_scopes(resource, obj, quota) else {}

    return usage
