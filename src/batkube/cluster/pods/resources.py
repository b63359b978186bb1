"""What pods ask for and what nodes offer, as amounts: cpu in millicores, all else in whole units.

As kube-scheduler and the kubelet count (scheduler framework, types NodeInfo and Resource): effective requests against
`status.allocatable`, the pod itself being one of `pods`.
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
#: More than an int64 counts: the API takes such requests, and no node has so much.
_UNBOUNDED = 2**63


def demand_of(pod: KubeObject) -> Amounts:
    """Return what `pod` takes from its node, as schedulers count: of one that is being resized, the most of it."""
    return spec_demand(_spec_with_max_requests(pod) if has_changed_spec(pod) else pod["spec"])


def has_changed_spec(pod: KubeObject) -> bool:
    """Return whether a pod may take other amounts than those it came with: its spec was changed since."""
    generation: int = pod["metadata"].get("generation") or 1
    return generation > 1


def spec_demand(spec: KubeObject) -> Amounts:
    """Return what a pod with this spec takes; it asks for nothing of a resource of which it asks 0."""
    try:
        demand = {resource: count for resource, count in read_pod_requests(_POD_SPEC, spec) if count}
    except InputError:
        demand = {CPU: _UNBOUNDED}
    demand[PODS] = 1
    return demand


def _spec_with_max_requests(pod: KubeObject) -> KubeObject:
    """Return a pod's spec with the most of what each container wants, was allocated and has.

    What a node could never give does not count (Kubernetes: component-helpers, determineContainerReqs).
    """
    spec, status = pod["spec"], pod.get("status", {})
    statuses = {
        one["name"]: one
        for field in ("initContainerStatuses", "containerStatuses")
        for one in status.get(field) or ()
        if "resources" in one
    }
    is_infeasible = any(
        one["type"] == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions") or ()
    )
    raised = dict(spec)
    for field in ("initContainers", "containers"):
        if spec.get(field):
            raised[field] = [
                _container_with_max_requests(one, statuses.get(one["name"]), is_infeasible) for one in spec[field]
            ]
    return raised


def _container_with_max_requests(container: KubeObject, status: KubeObject | None, is_infeasible: bool) -> KubeObject:
    if status is None:
        return container
    wanted = {} if is_infeasible else (container.get("resources") or {}).get("requests") or {}
    most = dict(wanted)
    for amounts in (status["resources"].get("requests") or {}, status.get("allocatedResources") or {}):
        for resource, quantity in amounts.items():
            if resource not in most or _parse_amount(resource, quantity) > _parse_amount(resource, most[resource]):
                most[resource] = quantity
    return {**container, "resources": {"requests": most}}


def allocatable_of(node: KubeObject) -> Amounts:
    """Return what pods may use of `node`: `status.allocatable`, or `status.capacity` where that is missing."""
    status = node.get("status", {})
    offered: Mapping[str, str] = status.get("allocatable") or status.get("capacity") or {}
    return {resource: _parse_amount(resource, quantity) for resource, quantity in offered.items()}


def add_amounts(total: Amounts, amounts: Mapping[str, int], sign: int = 1) -> None:
    """Add amounts to a total, or take them from it."""
    for resource, count in amounts.items():
        total[resource] = total.get(resource, 0) + sign * count


def _parse_amount(resource: str, quantity: str) -> int:
    try:
        return parse_amount(resource, quantity)
    except ValueError:
        return 0
