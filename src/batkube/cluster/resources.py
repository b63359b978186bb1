"""What pods ask for and what nodes offer, as amounts: cpu in millicores, all else in whole units.

As kube-scheduler and the kubelet count (scheduler framework, types NodeInfo and Resource): effective requests against
`status.allocatable`, the pod itself being one of `pods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from batkube.cluster.store import KubeObject
from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, PODS, amount
from batkube.workloads.fields import Place
from batkube.workloads.pod_requests import pod_requests

Amounts = dict[str, int]

_POD_SPEC = Place(Path("pod")) / "spec"
#: More than an int64 counts: the API takes such requests, and no node has so much.
_BOUNDLESS = 2**63


def demand_of(pod: KubeObject) -> Amounts:
    """Return what `pod` takes from its node; it asks for nothing of a resource of which it asks 0."""
    try:
        demand = {resource: count for resource, count in pod_requests(_POD_SPEC, pod["spec"]) if count}
    except InputError:
        demand = {CPU: _BOUNDLESS}
    demand[PODS] = 1
    return demand


def allocatable_of(node: KubeObject) -> Amounts:
    """Return what pods may use of `node`: `status.allocatable`, or `status.capacity` where that is missing."""
    status = node.get("status", {})
    offered: Mapping[str, str] = status.get("allocatable") or status.get("capacity") or {}
    return {resource: _counted(resource, quantity) for resource, quantity in offered.items()}


def add_amounts(total: Amounts, amounts: Mapping[str, int], sign: int = 1) -> None:
    """Add amounts to a total, or take them from it."""
    for resource, count in amounts.items():
        total[resource] = total.get(resource, 0) + sign * count


def _counted(resource: str, quantity: str) -> int:
    try:
        return amount(resource, quantity)
    except ValueError:
        return 0
