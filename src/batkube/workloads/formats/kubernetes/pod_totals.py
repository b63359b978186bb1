"""The effective requests or limits of a pod, from those of its containers.

* Containers run together, so their amounts add up.
* Init containers run one after the other before them, so their maximum counts.
* Sidecars (init containers with restartPolicy Always) run together with everything that starts after them.
* Pod-level resources replace this sum, and the overhead of the RuntimeClass is added.

Kubernetes: documentation, "Init Containers"; k8s.io/component-helpers/resource/helpers.go, PodRequests and PodLimits.
The rule is generic: nodes and schedulers count whole units, quotas and defaults exact quantities.
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
    """Return the total of all containers; each init container has a flag for sidecars."""
    total: dict[str, _Amount] = {}
    for container in containers:
        add_resources(total, container)
    sidecars: dict[str, _Amount] = {}
    starting: dict[str, _Amount] = {}
    for container, is_sidecar in init_containers:
        required = dict(sidecars)
        add_resources(required, container)
        if is_sidecar:
            add_resources(total, container)
            sidecars = required
        _raise_to_at_least(starting, required)
    _raise_to_at_least(total, starting)
    return total


def is_pod_level(resource: str) -> bool:
    """Return whether a resource is allowed at pod level (KEP-2837)."""
    return resource in (CPU, MEMORY) or resource.startswith(HUGE_PAGES)


def is_sidecar(init_container: Mapping[str, object]) -> bool:
    """Return whether an init container keeps running beside the containers (KEP-753)."""
    return init_container.get("restartPolicy") == "Always"


def add_resources(total: dict[str, _Amount], more: Mapping[str, _Amount]) -> None:
    """Add amounts to a total."""
    for resource, amount in more.items():
        total[resource] = total[resource] + amount if resource in total else amount


def _raise_to_at_least(total: dict[str, _Amount], least: Mapping[str, _Amount]) -> None:
    for resource, amount in least.items():
        if resource not in total or amount > total[resource]:
            total[resource] = amount
