"""Total resources of a pod's containers as exact quantities, and the defaults of pod-level resources.

Kubernetes: component-helpers/resource/helpers.go; `workloads.total_pod_resources` documents the rule.
"""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.defaults import list_items
from batkube.kernel.quantities import CPU, MEMORY, Quantity, parse_quantity
from batkube.workloads.formats.kubernetes.pod_totals import (
    HUGE_PAGES,
    add_resources,
    is_pod_level,
    is_sidecar,
    sum_of_containers,
)

PodResourceAmounts = dict[str, Quantity]
"""Amounts by resource name."""


def total_container_resources(spec: dict[str, Any], side: str) -> PodResourceAmounts:
    """Return the total `requests` or `limits` (the `side`) of all containers of a pod."""
    return sum_of_containers(
        (_parse_resources(container, side) for container in list_items(spec, "containers")),
        (
            (_parse_resources(container, side), is_sidecar(container))
            for container in list_items(spec, "initContainers")
        ),
    )


def total_pod_resources(spec: dict[str, Any], side: str) -> PodResourceAmounts:
    """Return the pod's total resources; the overhead is added to limits only where a limit is set (PodLimits)."""
    total = total_container_resources(spec, side)
    pod_level = _parse_resources(spec, side)
    total.update({name: amount for name, amount in pod_level.items() if is_pod_level(name)})
    overhead = {name: parse_quantity(text) for name, text in (spec.get("overhead") or {}).items()}
    limited = [name for name in overhead if name in total and total[name].nanos]
    add_resources(total, overhead if side == "requests" else {name: overhead[name] for name in limited})
    return total


def set_pod_level_resource_defaults(spec: dict[str, Any]) -> None:
    """Set pod-level limits (of huge pages) and requests to the totals of the containers."""
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or requests:
        for name, amount in total_container_resources(spec, "limits").items():
            if name.startswith(HUGE_PAGES) and name not in requests:
                limits.setdefault(name, str(amount))
    if not limits:
        return
    for name, amount in total_container_resources(spec, "requests").items():
        if name in (CPU, MEMORY):
            requests.setdefault(name, str(amount))
    for name, text in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, text)
    resources["limits"] = limits
    if requests:
        resources["requests"] = requests


def _parse_resources(holder: dict[str, Any], side: str) -> PodResourceAmounts:
    """Return the requests or limits of a container or a pod."""
    amounts = (holder.get("resources") or {}).get(side) or {}
    return {name: parse_quantity(text) for name, text in amounts.items()}
