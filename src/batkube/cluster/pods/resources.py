"""Resource amounts of pods and nodes: cpu in millicores, all other resources in whole units.

They are counted as kube-scheduler and the kubelet do: effective requests against `status.allocatable`, where each pod
takes one unit of `pods` (Kubernetes: pkg/scheduler/framework/types.go, NodeInfo and Resource).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from batkube.cluster.store import KubeObject
from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, PODS, parse_amount
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.pod_requests import read_pod_requests

Amounts = dict[str, int]

_POD_SPEC = Place(Path("pod")) / "spec"
#: The demand of a request that does not fit into an int64. The API accepts such requests, and no node can satisfy them.
_UNBOUNDED = 2**63


def demand_of(pod: KubeObject) -> Amounts:
    """Return the amounts that schedulers count for `pod`; during a resize, the maximum of old and new requests."""
    return spec_demand(_spec_with_max_requests(pod) if has_changed_spec(pod) else pod["spec"])


def has_changed_spec(pod: KubeObject) -> bool:
    """Return whether the spec was changed since creation, so that the requests may have changed."""
    generation: int = pod["metadata"].get("generation") or 1
    return generation > 1


def spec_demand(spec: KubeObject) -> Amounts:
    """Return the amounts that a pod with this spec takes; resources with a request of 0 are left out."""
    try:
        demand = {resource: count for resource, count in read_pod_requests(_POD_SPEC, spec) if count}
    except InputError:
        demand = {CPU: _UNBOUNDED}
    demand[PODS] = 1
    return demand


def _spec_with_max_requests(pod: KubeObject) -> KubeObject:
    """Return a pod's spec with the maximum of desired, allocated and actual requests of each container.

    Desired requests do not count if the resize is infeasible.
    Kubernetes: staging/src/k8s.io/component-helpers/resource/helpers.go, determineContainerReqs.
    """
    spec, status = pod["spec"], pod.get("status", {})
    statuses = {
        container_status["name"]: container_status
        for field in ("initContainerStatuses", "containerStatuses")
        for container_status in status.get(field) or ()
        if "resources" in container_status
    }
    is_infeasible = any(
        condition["type"] == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )
    raised = dict(spec)
    for field in ("initContainers", "containers"):
        if spec.get(field):
            raised[field] = [
                _container_with_max_requests(container, statuses.get(container["name"]), is_infeasible)
                for container in spec[field]
            ]
    return raised


def _container_with_max_requests(container: KubeObject, status: KubeObject | None, is_infeasible: bool) -> KubeObject:
    if status is None:
        return container
    desired = {} if is_infeasible else (container.get("resources") or {}).get("requests") or {}
    maximum = dict(desired)
    for amounts in (status["resources"].get("requests") or {}, status.get("allocatedResources") or {}):
        for resource, quantity in amounts.items():
            if resource not in maximum or _parse_amount(resource, quantity) > _parse_amount(
                resource, maximum[resource]
            ):
                maximum[resource] = quantity
    return {**container, "resources": {"requests": maximum}}


def allocatable_of(node: KubeObject) -> Amounts:
    """Return the amounts that pods can use on `node`: `status.allocatable`, or `status.capacity` if that is missing."""
    status = node.get("status", {})
    offered: Mapping[str, str] = status.get("allocatable") or status.get("capacity") or {}
    return {resource: _parse_amount(resource, quantity) for resource, quantity in offered.items()}


def add_amounts(total: Amounts, amounts: Mapping[str, int], sign: int = 1) -> None:
    """Add amounts to a total, or subtract them with a `sign` of -1."""
    for resource, count in amounts.items():
        total[resource] = total.get(resource, 0) + sign * count


def _parse_amount(resource: str, quantity: str) -> int:
    try:
        return parse_amount(resource, quantity)
    except ValueError:
        return 0
