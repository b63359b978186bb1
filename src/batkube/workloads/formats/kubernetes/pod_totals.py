"""What a pod needs as a whole, from what its containers need: the one place of the rule.

Containers run together, so their amounts add up; init containers run one after the other before them, so the largest
counts; sidecars (init containers that restart always) run along with everything that comes after them. What the pod
as a whole is given replaces that sum, and the runtime's overhead comes on top (documentation "Init Containers"; source
k8s.io/component-helpers/resource/helpers.go, PodRequests and PodLimits). Whoever counts in whole units (nodes and
schedulers) and whoever counts in exact quantities (quotas, defaults) follow it alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from batkube.kernel.quantities import CPU, MEMORY, Quantity

HUGE_PAGES = "hugepages-"


_Amount = TypeVar("_Amount", int, Quantity)


def sum_of_containers(
    containers: Iterable[Mapping[str, _Amount]], init_containers: Iterable[tuple[Mapping[str, _Amount], bool]]
) -> dict[str, _Amount]:
    """Return what all containers of a pod need; each init container comes with whether it is a sidecar."""
    total: dict[str, _Amount] = {}
    for container in containers:
        add_resources(total, container)
    sidecars: dict[str, _Amount] = {}
    starting: dict[str, _Amount] = {}
    for container, is_sidecar in init_containers:
        needed = dict(sidecars)
        add_resources(needed, container)
        if is_sidecar:
            add_resources(total, container)
            sidecars = needed
        _raise_to_at_least(starting, needed)
    _raise_to_at_least(total, starting)
    return total


def is_pod_level(resource: str) -> bool:
    """Tell whether an amount may be given for the pod as a whole (KEP-2837)."""
    return resource in (CPU, MEMORY) or resource.startswith(HUGE_PAGES)


def is_sidecar(init_container: Mapping[str, object]) -> bool:
    """Tell whether an init container goes on running beside the containers."""
    return init_container.get("restartPolicy") == "Always"


def add_resources(total: dict[str, _Amount], more: Mapping[str, _Amount]) -> None:
    """Add amounts to a total."""
    for resource, amount in more.items():
        total[resource] = total[resource] + amount if resource in total else amount


def _raise_to_at_least(total: dict[str, _Amount], least: Mapping[str, _Amount]) -> None:
    for resource, amount in least.items():
        if resource not in total or amount > total[resource]:
            total[resource] = amount
