"""Calculates the number of replicas from the usage of the current pods.

If all pods have metrics, the size changes in proportion to the ratio of usage to target. Pods without metrics are
assumed to use nothing when scaling up, and the full target when scaling down, so that the change is smaller.
Kubernetes: pkg/controller/podautoscaler/replica_calculator.go and metrics/utilization.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from batkube.cluster.object_meta import condition_of, is_being_deleted
from batkube.cluster.pods.accessors import phase_of
from batkube.cluster.pods.usage import WINDOW, PodUsage
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, instant_of, seconds
from batkube.kernel.quantities import CPU, parse_quantity

#: --horizontal-pod-autoscaler-tolerance: no change within this distance from the target. These are the defaults.
_TOLERANCE = 0.1
#: --horizontal-pod-autoscaler-cpu-initialization-period: for so long after its start, the CPU usage of a pod only
#: counts once the pod has been ready for a whole metrics window.
_CPU_INITIALISATION: Duration = seconds(300)
#: --horizontal-pod-autoscaler-initial-readiness-delay: a pod that became unready earlier has never been ready.
_INITIAL_READINESS: Duration = seconds(30)

#: Usage of each pod in thousandths, by pod name.
Samples = dict[str, int]


class CalculationFailed(Exception):
    """The number of replicas cannot be calculated; the message is Kubernetes'."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target average of a resource: a percentage of the requests, or an amount in thousandths."""

    resource: str
    #: The container to measure; "" for the whole pod.
    container: str
    utilisation_percent: int | None
    average: int | None


class ReplicaProposal(NamedTuple):
    """The proposed number of replicas, and the current average usage."""

    replicas: int
    average: int
    utilisation_percent: int | None


class _Usage(NamedTuple):
    """Usage of some pods relative to the target; a ratio of 1 meets it exactly."""

    ratio: float
    average: int
    utilisation_percent: int | None


class _PodGroups(NamedTuple):
    ready_count: int
    unready: list[str]
    missing: list[str]
    ignored: list[str]


def calculate_replicas(
    target: Target, pods: Sequence[KubeObject], pod_usage: PodUsage, size: int, now: Instant
) -> ReplicaProposal:
    """Return the proposed number of replicas for a target of size `size`. Raises CalculationFailed.

    Kubernetes: GetResourceReplicas.
    """
    samples = _samples(target, pods, pod_usage, now)
    if not pods:
        raise CalculationFailed("no pods returned by selector while calculating replica count")
    groups = _group_pods(pods, samples, target.resource, now)
    counted_samples = _without(samples, {*groups.ignored, *groups.unready})
    if not counted_samples:
        raise CalculationFailed("did not receive metrics for targeted pods (pods might be unready)")
    requests = {} if target.utilisation_percent is None else _requests(target, pods)
    measured = _usage(target, counted_samples, requests)
    usage_now = measured.average, measured.utilisation_percent
    has_unready = bool(groups.unready) and measured.ratio > 1
    if not has_unready and not groups.missing:
        # Within the tolerance, the size stays.
        replicas = size if _is_within_tolerance(measured.ratio) else math.ceil(measured.ratio * groups.ready_count)
        return ReplicaProposal(replicas, *usage_now)
    all_samples = {**counted_samples, **_assumed_samples(target, groups.missing, requests, measured.ratio)}
    if has_unready:
        all_samples |= dict.fromkeys(groups.unready, 0)
    assumed = _usage(target, all_samples, requests)
    is_reversed = (measured.ratio < 1 < assumed.ratio) or (assumed.ratio < 1 < measured.ratio)
    if is_reversed or _is_within_tolerance(assumed.ratio):
        return ReplicaProposal(size, *usage_now)
    replicas = math.ceil(assumed.ratio * len(all_samples))
    if (assumed.ratio < 1 and replicas > size) or (assumed.ratio > 1 and replicas < size):
        return ReplicaProposal(size, *usage_now)
    return ReplicaProposal(replicas, *usage_now)


def _samples(target: Target, pods: Iterable[KubeObject], pod_usage: PodUsage, now: Instant) -> Samples:
    samples: Samples = {}
    is_any_measured = False
    for pod in pods:
        usages = pod_usage.of(pod, now)
        is_any_measured |= bool(usages)
        counted = [usages[name] for name in usages if not target.container or name == target.container]
        if counted and all(target.resource in usage for usage in counted):
            samples[_pod_name(pod)] = sum(usage[target.resource].milli_value for usage in counted)
    if not is_any_measured:
        message = "no metrics returned from resource metrics API"
        raise CalculationFailed(f"unable to get metrics for resource {target.resource}: {message}")
    return samples


def _group_pods(pods: Iterable[KubeObject], samples: Samples, resource: str, now: Instant) -> _PodGroups:
    # Kubernetes: groupPods.
    ready_count = 0
    unready, missing, ignored = list[str](), list[str](), list[str]()
    for pod in pods:
        name, phase = _pod_name(pod), phase_of(pod)
        if is_being_deleted(pod) or phase == "Failed":
            ignored.append(name)
        elif phase == "Pending":
            unready.append(name)
        elif name not in samples:
            missing.append(name)
        elif resource == CPU and _is_unready(pod, now):
            unready.append(name)
        else:
            ready_count += 1
    return _PodGroups(ready_count, unready, missing, ignored)


def _is_unready(pod: KubeObject, now: Instant) -> bool:
    """Return whether the CPU usage of a pod is still that of its start-up."""
    condition, start = condition_of(pod, "Ready"), pod["status"].get("startTime")
    if condition is None or start is None:
        return True
    is_false, since = condition["status"] == "False", instant_of(condition["lastTransitionTime"])
    if instant_of(start) + _CPU_INITIALISATION > now:
        return is_false or now < since + WINDOW
    return is_false and instant_of(start) + _INITIAL_READINESS > since


def _requests(target: Target, pods: Iterable[KubeObject]) -> dict[str, int]:
    # Kubernetes: replica_calculator.go, calculateRequests.
    return {_pod_name(pod): _request(target, pod) for pod in pods}


def _request(target: Target, pod: KubeObject) -> int:
    """Return the request of a pod: the pod-level one if set, otherwise the sum over regular and sidecar containers."""
    spec, resource = pod["spec"], target.resource
    pod_requests = (spec.get("resources") or {}).get("requests")
    if pod_requests and not target.container:
        if resource not in pod_requests:
            raise CalculationFailed(f"missing pod-level request for {resource} in Pod {_pod_name(pod)}")
        return parse_quantity(pod_requests[resource]).milli_value
    sidecars = [
        container for container in spec.get("initContainers") or () if container.get("restartPolicy") == "Always"
    ]
    total = 0
    for container in (*spec["containers"], *sidecars):
        if target.container and container["name"] != target.container:
            continue
        requests = (container.get("resources") or {}).get("requests") or {}
        if resource not in requests:
            raise CalculationFailed(
                f"missing request for {resource} in container {container['name']} of Pod {_pod_name(pod)}"
            )
        total += parse_quantity(requests[resource]).milli_value
    return total


def _usage(target: Target, samples: Samples, requests: Mapping[str, int]) -> _Usage:
    # Kubernetes: metrics/utilization.go, GetResourceUtilizationRatio.
    if target.utilisation_percent is None:
        assert target.average is not None
        average = sum(samples.values()) // len(samples)
        return _Usage(average / target.average, average, None)
    total, requested = sum(samples.values()), sum(requests[name] for name in samples)
    if not requested:
        raise CalculationFailed("no metrics returned matched known pods")
    percent = total * 100 // requested
    return _Usage(percent / target.utilisation_percent, total // len(samples), percent)


def _assumed_samples(target: Target, missing: Iterable[str], requests: Mapping[str, int], ratio: float) -> Samples:
    """Return the assumed usage of pods without metrics."""
    share = max(100, target.utilisation_percent or 0)
    full_usage: Callable[[str], int] = (
        (lambda _: target.average or 0)
        if target.utilisation_percent is None
        else lambda name: requests[name] * share // 100
    )
    if ratio == 1:
        return {}
    return {name: full_usage(name) if ratio < 1 else 0 for name in missing}


def _without(samples: Samples, names: Collection[str]) -> Samples:
    return {name: value for name, value in samples.items() if name not in names}


def _is_within_tolerance(ratio: float) -> bool:
    return 1.0 - _TOLERANCE <= ratio <= 1.0 + _TOLERANCE


def _pod_name(pod: KubeObject) -> str:
    name: str = pod["metadata"]["name"]
    return name
