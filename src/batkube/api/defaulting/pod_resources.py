"""What the containers of a pod need together, and the pod-level amounts that default to it.

Init containers run one after the other before the rest, so a pod needs the largest of them or the sum of the others,
whichever is more; an init container that restarts always (a sidecar) keeps running and counts with both. Kubernetes:
component-helpers/resource/helpers.go, AggregateContainerRequests and AggregateContainerLimits.
"""

from __future__ import annotations

from typing import Any

from batkube.api.defaulting.filling import structs
from batkube.kernel.quantities import Quantity, parse_quantity

Amounts = dict[str, Quantity]
"""How much of each resource."""

_HUGE_PAGES = "hugepages-"
_POD_LEVEL = ("cpu", "memory")


def container_amounts(spec: dict[str, Any], side: str) -> Amounts:
    """Return the `requests` or `limits` (the `side`) of all containers of a pod together."""
    total: Amounts = {}
    for container in structs(spec, "containers"):
        _add(total, _amounts(container, side))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in structs(spec, "initContainers"):
        own = _amounts(container, side)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            needed = sidecars
        else:
            needed = dict(own)
            _add(needed, sidecars)
        _raise_to(starting, needed)
    _raise_to(total, starting)
    return total


def pod_amounts(spec: dict[str, Any], side: str) -> Amounts:
    """Return what a pod needs as a whole: pod-level amounts before those of its containers, and the overhead.

    Kubernetes: PodRequests and PodLimits; an overhead counts as a limit only where there is one.
    """
    total = container_amounts(spec, side)
    pod_level = (spec.get("resources") or {}).get(side)
    if pod_level:
        for name, text in pod_level.items():
            if is_pod_level(name):
                total[name] = parse_quantity(text)
    for name, text in (spec.get("overhead") or {}).items():
        if side == "requests" or (name in total and total[name].nanos):
            total[name] = total.get(name, Quantity(0)) + parse_quantity(text)
    return total


def is_pod_level(name: str) -> bool:
    """Tell whether a resource may be given for the pod as a whole."""
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def fill_pod_level_resources(spec: dict[str, Any]) -> None:
    """Default the pod-level limits (of huge pages) and requests to what the containers say."""
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or requests:
        for name, amount in container_amounts(spec, "limits").items():
            if name.startswith(_HUGE_PAGES) and name not in requests:
                limits.setdefault(name, str(amount))
    if not limits:
        return
    for name, amount in container_amounts(spec, "requests").items():
        if name in _POD_LEVEL:
            requests.setdefault(name, str(amount))
    for name, text in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, text)
    resources["limits"] = limits
    if requests:
        resources["requests"] = requests


def _amounts(container: dict[str, Any], side: str) -> Amounts:
    given = (container.get("resources") or {}).get(side) or {}
    return {name: parse_quantity(text) for name, text in given.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount
