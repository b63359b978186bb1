"""What a pod asks of its node, from its manifest.

The rule is Kubernetes' (documentation "Init Containers", "Resource sharing within containers"; source
k8s.io/component-helpers/resource, PodRequests): containers run together, so their requests add up; init containers run
one after the other before them, so the largest counts; sidecars (init containers that restart always) run along with
everything that comes after them; the runtime's overhead comes on top. A limit without request is a request.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.kernel.quantities import CPU, MEMORY
from batkube.workloads import fields as take
from batkube.workloads.fields import Place
from batkube.workloads.model import Requests

Amounts = dict[str, int]


def pod_requests(place: Place, spec: Mapping[str, object]) -> Requests:
    """Return the effective requests of the pod whose spec stands at `place`."""
    total: Amounts = {}
    for index, container in enumerate(_list(place, spec, "containers")):
        total = _sum(total, _container(place / "containers", index, container))
    largest_init: Amounts = {}
    sidecars: Amounts = {}
    for index, container in enumerate(_list(place, spec, "initContainers")):
        own = _container(place / "initContainers", index, container)
        if take.mapping((place / "initContainers")[index], container).get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, own)
            largest_init = _larger(largest_init, sidecars)
        else:
            largest_init = _larger(largest_init, _sum(sidecars, own))
    effective = _larger(_sum(total, sidecars), largest_init)
    # Pod-level resources, where given, replace what the containers add up to (KEP-2837): cpu, memory, huge pages.
    effective.update(
        {
            resource: count
            for resource, count in _resources(place / "resources", spec.get("resources")).items()
            if resource in (CPU, MEMORY) or resource.startswith("hugepages-")
        }
    )
    overhead = _amounts(place / "overhead", spec.get("overhead"))
    return tuple(sorted(_sum(effective, overhead).items()))


def _list(place: Place, spec: Mapping[str, object], key: str) -> list[object]:
    return [] if spec.get(key) is None else take.items(place / key, spec[key])


def _container(place: Place, index: int, container: object) -> Amounts:
    fields = take.mapping(place[index], container)
    return _resources(place[index] / "resources", fields.get("resources"))


def _resources(place: Place, resources: object) -> Amounts:
    if resources is None:
        return {}
    fields = take.mapping(place, resources)
    return {**_amounts(place / "limits", fields.get("limits")), **_amounts(place / "requests", fields.get("requests"))}


def _amounts(place: Place, quantities: object) -> Amounts:
    if quantities is None:
        return {}
    return {
        resource: take.quantity(place / resource, resource, value)
        for resource, value in take.mapping(place, quantities).items()
    }


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return {**one, **{resource: one.get(resource, 0) + count for resource, count in other.items()}}


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {**one, **{resource: max(one.get(resource, 0), count) for resource, count in other.items()}}
