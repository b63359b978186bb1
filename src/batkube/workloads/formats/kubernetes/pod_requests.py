"""Read the effective requests of a pod from its manifest, in whole units.

A resource with a limit but no request is requested up to its limit. `pod_totals` combines the requests of the
containers.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.workloads import fields as require
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.pod_totals import add_resources, is_pod_level, is_sidecar, sum_of_containers
from batkube.workloads.model import Requests

Amounts = dict[str, int]


def read_pod_requests(place: Place, spec: Mapping[str, object]) -> Requests:
    """Return the effective requests of a pod with this `spec`."""
    total = sum_of_containers(
        (own for own, _ in _containers(place, spec, "containers")), _containers(place, spec, "initContainers")
    )
    pod_level = _resources(place / "resources", spec.get("resources"))
    total.update({resource: count for resource, count in pod_level.items() if is_pod_level(resource)})
    add_resources(total, _amounts(place / "overhead", spec.get("overhead")))
    return tuple(sorted(total.items()))


def _containers(place: Place, spec: Mapping[str, object], key: str) -> list[tuple[Amounts, bool]]:
    """Return the requests of each container, and whether it is a sidecar."""
    items = [] if spec.get(key) is None else require.array(place / key, spec[key])
    containers = [
        ((place / key)[index], require.mapping((place / key)[index], item)) for index, item in enumerate(items)
    ]
    return [
        (_resources(at / "resources", container.get("resources")), is_sidecar(container))
        for at, container in containers
    ]


def _resources(place: Place, resources: object) -> Amounts:
    if resources is None:
        return {}
    fields = require.mapping(place, resources)
    return {**_amounts(place / "limits", fields.get("limits")), **_amounts(place / "requests", fields.get("requests"))}


def _amounts(place: Place, quantities: object) -> Amounts:
    if quantities is None:
        return {}
    return {
        resource: require.quantity(place / resource, resource, value)
        for resource, value in require.mapping(place, quantities).items()
    }
