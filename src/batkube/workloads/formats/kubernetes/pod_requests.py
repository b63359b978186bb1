"""What a pod asks of its node, read from its manifest in whole units; a limit without request is a request.

`total_pod_resources` has the rule by which the containers' requests become the pod's.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.workloads import fields as take
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.pod_totals import add_resources, is_pod_level, is_sidecar, sum_of_containers
from batkube.workloads.model import Requests

Amounts = dict[str, int]


def read_pod_requests(place: Place, spec: Mapping[str, object]) -> Requests:
    """Return the effective requests of the pod whose spec stands at `place`."""
    total = sum_of_containers(
        (own for own, _ in _containers(place, spec, "containers")), _containers(place, spec, "initContainers")
    )
    pod_level = _resources(place / "resources", spec.get("resources"))
    total.update({resource: count for resource, count in pod_level.items() if is_pod_level(resource)})
    add_resources(total, _amounts(place / "overhead", spec.get("overhead")))
    return tuple(sorted(total.items()))


def _containers(place: Place, spec: Mapping[str, object], key: str) -> list[tuple[Amounts, bool]]:
    """Return what each container asks for, and whether it is a sidecar."""
    listed = [] if spec.get(key) is None else take.array(place / key, spec[key])
    containers = [((place / key)[index], take.mapping((place / key)[index], one)) for index, one in enumerate(listed)]
    return [(_resources(at / "resources", one.get("resources")), is_sidecar(one)) for at, one in containers]


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
