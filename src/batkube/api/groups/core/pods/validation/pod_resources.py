"""Validation of pod-level resources.

Kubernetes: pkg/apis/core/validation (validatePodResources), component-helpers/resource (AggregateContainerRequests).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import check_pod_resource, check_resource_requirements, is_huge_pages, quantity
from batkube.kernel.quantities import Quantity

ResourceAmounts = dict[str, Quantity]


def check_pod_resources(
    spec: Mapping[str, Any], resources: Mapping[str, Any], claims: frozenset[str], path: str, problems: Problems
) -> None:
    """Check pod-level resources by themselves and against the totals of the containers."""
    if spec.get("os", {}).get("name") == "windows":
        problems.forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        problems.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    check_resource_requirements(resources, check_pod_resource, claims, path, problems)
    requests, allowed = resources.get("requests", {}), resources.get("limits", {})
    for name, total in aggregate_resources(spec, "requests").items():
        if name in requests and total > quantity(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            problems.invalid(f"{path}.requests[{name}]", str(requests[name]), detail)
    for name, total in aggregate_resources(spec, "limits").items():
        if is_huge_pages(name) and name in allowed and total > quantity(allowed[name]):
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            problems.invalid(f"{path}.limits[{name}]", str(allowed[name]), detail)
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in container.get("resources", {}).get("limits", {}).items():
            if name in allowed and quantity(limit) > quantity(allowed[name]):
                detail = f"must be less than or equal to pod limits of {allowed[name]}"
                problems.invalid(f"{path}.containers[{index}][{name}].limits", str(limit), detail)


def aggregate_resources(spec: Mapping[str, Any], side: str) -> ResourceAmounts:
    """Return the peak resources of a pod's containers, as the scheduler computes them."""
    total: ResourceAmounts = {}
    for container in spec.get("containers") or ():
        total = _sum(total, _parse_resources(container, side))
    sidecars: ResourceAmounts = {}
    start: ResourceAmounts = {}
    for container in spec.get("initContainers", ()):
        own = _parse_resources(container, side)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _sum(total, own), _sum(sidecars, own)
            start = _elementwise_max(start, sidecars)
        else:
            start = _elementwise_max(start, _sum(own, sidecars))
    return _elementwise_max(total, start)


def _parse_resources(container: Mapping[str, Any], side: str) -> ResourceAmounts:
    return {name: quantity(text) for name, text in container.get("resources", {}).get(side, {}).items()}


def _sum(first: ResourceAmounts, second: ResourceAmounts) -> ResourceAmounts:
    return first | {name: first[name] + amount if name in first else amount for name, amount in second.items()}


def _elementwise_max(first: ResourceAmounts, second: ResourceAmounts) -> ResourceAmounts:
    return first | {name: amount for name, amount in second.items() if name not in first or amount > first[name]}
