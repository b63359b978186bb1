"""LimitRanger: applies default requests and limits to containers, and enforces minima and maxima per namespace.

Kubernetes: plugin/pkg/admission/limitranger/admission.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from batkube.api.admission.request import AdmissionRequest
from batkube.api.groups.core.pods.resource_totals import PodResourceAmounts, total_container_resources
from batkube.kernel.quantities import Quantity, parse_quantity

_ANNOTATION = "kubernetes.io/limit-ranger"
_CONTAINERS = (("containers", "container"), ("initContainers", "init container"))
_POD_LEVEL_RESOURCES = ("cpu", "memory")

LimitCheck = Callable[[str, str, Quantity, PodResourceAmounts, PodResourceAmounts], str]
"""Checks (type of limit, resource, bound, requests, limits); returns the problem, "" if there is none."""


def apply_default_limits(request: AdmissionRequest) -> None:
    """Apply the namespace's default requests and limits to a new or resized pod, and annotate it."""
    if request.old is not None and request.subresource != "resize":
        return
    for _, limit_range in request.objects_in_namespace("limitranges"):
        requests: dict[str, str] = {}
        limits: dict[str, str] = {}
        for item in limit_range["spec"].get("limits") or ():
            if item.get("type") == "Container":
                requests.update(item.get("defaultRequest") or {})
                limits.update(item.get("default") or {})
        notes: list[str] = []
        for field, word in _CONTAINERS:
            for container in request.value["spec"].get(field) or ():
                notes += _apply_container_defaults(container, word, requests, limits)
        if notes:
            metadata = request.value["metadata"]
            text = f"LimitRanger plugin set: {'; '.join(notes)}"
            metadata["annotations"] = {**(metadata.get("annotations") or {}), _ANNOTATION: text}


def _apply_container_defaults(
    container: dict[str, Any], word: str, requests: dict[str, str], limits: dict[str, str]
) -> Iterator[str]:
    """Set missing amounts, and yield a description of each change."""
    resources = container.get("resources") or {}
    container["resources"] = resources
    for side, kind, defaults in (("requests", "request", requests), ("limits", "limit", limits)):
        amounts = resources.get(side) or {}
        missing = sorted(name for name in defaults if name not in amounts)
        if missing:
            resources[side] = {**amounts, **{name: defaults[name] for name in missing}}
            yield f"{', '.join(missing)} {kind} for {word} {container.get('name', '')}"


def check_pod_limits(request: AdmissionRequest) -> None:
    """Reject a new or resized pod if it, or one of its containers, violates a LimitRange."""
    if request.old is not None and request.subresource != "resize":
        return
    spec = request.value["spec"]
    for _, limit_range in request.objects_in_namespace("limitranges"):
        problems: list[str] = []
        for item in limit_range["spec"].get("limits") or ():
            if item.get("type") == "Container":
                for field, _ in _CONTAINERS:
                    for container in spec.get(field) or ():
                        resources = container.get("resources") or {}
                        sides = (_parse_amounts(resources.get("requests")), _parse_amounts(resources.get("limits")))
                        problems += _violations(item, "Container", *sides)
            elif item.get("type") == "Pod":
                problems += _violations(item, "Pod", _pod_amounts(spec, "requests"), _pod_amounts(spec, "limits"))
        _reject(request, problems)


def check_claim_limits(request: AdmissionRequest) -> None:
    """Reject a PersistentVolumeClaim that violates a LimitRange."""
    requests = _parse_amounts((request.value["spec"].get("resources") or {}).get("requests"))
    for _, limit_range in request.objects_in_namespace("limitranges"):
        problems = []
        for item in limit_range["spec"].get("limits") or ():
            if item.get("type") == "PersistentVolumeClaim":
                for name, text in sorted((item.get("min") or {}).items()):
                    problems.append(_check_min("PersistentVolumeClaim", name, parse_quantity(text), requests, {}))
                for name, text in sorted((item.get("max") or {}).items()):
                    problems.append(_check_max_request("PersistentVolumeClaim", name, parse_quantity(text), requests))
        _reject(request, problems)


def _reject(request: AdmissionRequest, problems: list[str]) -> None:
    distinct = list(dict.fromkeys(problem for problem in problems if problem))
    if distinct:
        raise request.forbidden(distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")


def _violations(
    item: dict[str, Any], kind: str, requests: PodResourceAmounts, limits: PodResourceAmounts
) -> Iterator[str]:
    """Yield the problems with the amounts ("" for none), by type of limit and then by resource name."""
    for field, check in _CHECKS:
        for name, text in sorted((item.get(field) or {}).items()):
            yield check(kind, name, parse_quantity(text), requests, limits)


def _check_min(kind: str, name: str, bound: Quantity, requests: PodResourceAmounts, limits: PodResourceAmounts) -> str:
    least = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{least}.  No request is specified"
    if requests[name] < bound:
        return f"{least}, but request is {requests[name]}"
    if name in limits and limits[name] < bound:
        return f"{least}, but limit is {limits[name]}"
    return ""


def _check_max(kind: str, name: str, bound: Quantity, requests: PodResourceAmounts, limits: PodResourceAmounts) -> str:
    most = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        return f"{most}.  No limit is specified"
    if limits[name] > bound:
        return f"{most}, but limit is {limits[name]}"
    if name in requests and requests[name] > bound:
        return f"{most}, but request is {requests[name]}"
    return ""


def _check_max_request(kind: str, name: str, bound: Quantity, requests: PodResourceAmounts) -> str:
    most = f"maximum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{most}.  No request is specified"
    return f"{most}, but request is {requests[name]}" if requests[name] > bound else ""


def _check_ratio(
    kind: str, name: str, bound: Quantity, requests: PodResourceAmounts, limits: PodResourceAmounts
) -> str:
    most = f"{name} max limit to request ratio per {kind} is {bound}"
    for word, amounts in (("request", requests), ("limit", limits)):
        if name not in amounts or amounts[name].nanos == 0:
            return f"{most}, but no {word} is specified or {word} is 0"
    limit, request = limits[name].milli_value, requests[name].milli_value
    if limit * 1000 > bound.milli_value * request:
        return f"{most}, but provided ratio is {limit / request:f}"
    return ""


_CHECKS: tuple[tuple[str, LimitCheck], ...] = (
    ("min", _check_min),
    ("max", _check_max),
    ("maxLimitRequestRatio", _check_ratio),
)


def _parse_amounts(amounts: dict[str, str] | None) -> PodResourceAmounts:
    return {name: parse_quantity(text) for name, text in (amounts or {}).items()}


def _pod_amounts(spec: dict[str, Any], side: str) -> PodResourceAmounts:
    """Return the total requests or limits of a pod, without its overhead; pod-level resources take precedence."""
    pod_level = _parse_amounts((spec.get("resources") or {}).get(side))
    return {
        **total_container_resources(spec, side),
        **{name: pod_level[name] for name in _POD_LEVEL_RESOURCES if name in pod_level},
    }
