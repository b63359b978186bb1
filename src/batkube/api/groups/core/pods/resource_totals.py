"""What the containers of a pod need together as exact quantities, and the pod-level amounts that default to it.

Kubernetes: component-helpers/resource/helpers.go; `workloads.total_pod_resources` has the rule.
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
"""How much of each resource."""


def total_container_resources(spec: dict[str, Any], side: str) -> PodResourceAmounts:
    """Return the `requests` or `limits` (the `side`) of all containers of a pod together."""
    return sum_of_containers(
        (_parse_resources(one, side) for one in list_items(spec, "containers")),
        ((_parse_resources(one, side), is_sidecar(one)) for one in list_items(spec, "initContainers")),
    )


def total_pod_resources(spec: dict[str, Any], side: str) -> PodResourceAmounts:
    """Return what a pod needs as a whole; an overhead counts as a limit only where there is one (PodLimits)."""
    total = total_container_resources(spec, side)
    pod_level = _parse_resources(spec, side)
    total.update({name: amount for name, amount in pod_level.items() if is_pod_level(name)})
    overhead = {name: parse_quantity(text) for name, text in (spec.get("overhead") or {}).items()}
    limited = [name for name in overhead if name in total and total[name].nanos]
    add_resources(total, overhead if side == "requests" else {name: overhead[name] for name in limited})
    return total


def set_pod_level_resource_defaults(spec: dict[str, Any]) -> None:
    """Default the pod-level limits (of huge pages) and requests to what the containers say."""
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
    """Return the amounts that a container, or the pod as a whole, gives on one side."""
    amounts = (holder.get("resources") or {}).get(side) or {}
    return {name: parse_quantity(text) for name, text in amounts.items()}
