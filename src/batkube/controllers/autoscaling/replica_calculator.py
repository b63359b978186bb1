"""How many pods there should be, by what those that are there use.

With every pod measured it is a rule of three: as many as bring the average to the target. What is unknown is taken for
what speaks against a change: a pod without a measure uses nothing when there should be more, and as much as it may when
there should be fewer. Kubernetes: pkg/controller/podautoscaler/replica_calculator.go and metrics/utilization.go.
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

#: So far from the target, as a share of it, nothing is done. All three are the defaults of kube-controller-manager.
_TOLERANCE = 0.1
#: While a pod is that young, what it uses counts only once it has been ready for a window of measuring.
_CPU_INITIALISATION: Duration = seconds(300)
#: A pod that became unready no later than this after its start has never been ready.
_INITIAL_READINESS: Duration = seconds(30)

#: What each pod uses, in thousandths, by its name.
Samples = dict[str, int]


class CalculationFailed(Exception):
    """Nothing can be said of how many pods there should be; the message is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Target:
    """What pods should use on average of a resource: a share of what they request, or an amount in thousandths."""

    resource: str
    #: The container that counts; "" for all of a pod's.
    container: str
    utilisation_percent: int | None
    average: int | None


class ReplicaProposal(NamedTuple):
    """How many pods there should be, and what those that are there use on average."""

    replicas: int
    average: int
    utilisation_percent: int | None


class _Usage(NamedTuple):
    """The use of some pods beside the target: 1 is as much as it should be."""

    ratio: float
    average: int
    utilisation_percent: int | None


class _PodGroups(NamedTuple):
    ready_count: int
    unready: list[str]
    missing: list[str]
    ignored: list[str]


def calculate_replicas(
    target: Target, pods: Sequence[KubeObject], use: PodUsage, size: int, now: Instant
) -> ReplicaProposal:
    """Return how many pods there should be where `pods` are, and `size` are asked for; raises CalculationFailed."""
    samples = _samples(target, pods, use, now)
    if not pods:
        raise CalculationFailed("no pods returned by selector while calculating replica count")
    groups = _group_pods(pods, samples, target.resource, now)
    known = _without(samples, {*groups.ignored, *groups.unready})
    if not known:
        raise CalculationFailed("did not receive metrics for targeted pods (pods might be unready)")
    requests = {} if target.utilisation_percent is None else _requests(target, pods)
    present = _usage(target, known, requests)
    told = present.average, present.utilisation_percent
    has_unready = bool(groups.unready) and present.ratio > 1
    if not has_unready and not groups.missing:
        # What is close enough to the target stays as it is.
        replicas = size if _is_within_tolerance(present.ratio) else math.ceil(present.ratio * groups.ready_count)
        return ReplicaProposal(replicas, *told)
    filled = {**known, **_assumed_samples(target, groups.missing, requests, present.ratio)}
    if has_unready:
        filled |= dict.fromkeys(groups.unready, 0)
    assumed = _usage(target, filled, requests)
    turns = (present.ratio < 1 < assumed.ratio) or (assumed.ratio < 1 < present.ratio)
    if turns or _is_within_tolerance(assumed.ratio):
        return ReplicaProposal(size, *told)
    replicas = math.ceil(assumed.ratio * len(filled))
    if (assumed.ratio < 1 and replicas > size) or (assumed.ratio > 1 and replicas < size):
        return ReplicaProposal(size, *told)
    return ReplicaProposal(replicas, *told)


def _samples(target: Target, pods: Iterable[KubeObject], use: PodUsage, now: Instant) -> Samples:
    samples: Samples = {}
    is_any_measured = False
    for pod in pods:
        usages = use.of(pod, now)
        is_any_measured |= bool(usages)
        counted = [usages[name] for name in usages if not target.container or name == target.container]
        if counted and all(target.resource in usage for usage in counted):
            samples[_pod_name(pod)] = sum(usage[target.resource].milli_value for usage in counted)
    if not is_any_measured:
        message = "no metrics returned from resource metrics API"
        raise CalculationFailed(f"unable to get metrics for resource {target.resource}: {message}")
    return samples


def _group_pods(pods: Iterable[KubeObject], samples: Samples, resource: str, now: Instant) -> _PodGroups:
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
    """Return whether a pod's use of cpu tells nothing yet: it is that of starting."""
    condition, start = condition_of(pod, "Ready"), pod["status"].get("startTime")
    if condition is None or start is None:
        return True
    is_false, since = condition["status"] == "False", instant_of(condition["lastTransitionTime"])
    if instant_of(start) + _CPU_INITIALISATION > now:
        return is_false or now < since + WINDOW
    return is_false and instant_of(start) + _INITIAL_READINESS > since


def _requests(target: Target, pods: Iterable[KubeObject]) -> dict[str, int]:
    return {_pod_name(pod): _request(target, pod) for pod in pods}


def _request(target: Target, pod: KubeObject) -> int:
    """Return what a pod requests: as a whole where it says so, else all containers that run side by side."""
    spec, resource = pod["spec"], target.resource
    of_pod = (spec.get("resources") or {}).get("requests")
    if of_pod and not target.container:
        if resource not in of_pod:
            raise CalculationFailed(f"missing pod-level request for {resource} in Pod {_pod_name(pod)}")
        return parse_quantity(of_pod[resource]).milli_value
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
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
    """Return what pods without a measure are taken to use."""
    share = max(100, target.utilisation_percent or 0)
    most: Callable[[str], int] = (
        (lambda _: target.average or 0)
        if target.utilisation_percent is None
        else lambda name: requests[name] * share // 100
    )
    if ratio == 1:
        return {}
    return {name: most(name) if ratio < 1 else 0 for name in missing}


def _without(samples: Samples, names: Collection[str]) -> Samples:
    return {name: value for name, value in samples.items() if name not in names}


def _is_within_tolerance(ratio: float) -> bool:
    return 1.0 - _TOLERANCE <= ratio <= 1.0 + _TOLERANCE


def _pod_name(pod: KubeObject) -> str:
    name: str = pod["metadata"]["name"]
    return name
