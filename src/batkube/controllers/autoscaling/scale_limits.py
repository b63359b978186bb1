"""Limits of scaling: bounds, rates and stabilization.

Before scaling down, the highest recommendation of the stabilization window counts, so that a short decrease of usage
does not remove pods that the next peak needs. Past changes are recorded for rate policies such as "four pods a minute".
By default, the size is not below any recommendation of the last five minutes, and at most doubles or reaches four pods.
Kubernetes: pkg/controller/podautoscaler/horizontal.go, normalizeDesiredReplicas and the functions after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, seconds

#: --horizontal-pod-autoscaler-downscale-stabilization.
_DOWNSCALE_WINDOW: Duration = seconds(300)
#: The longest periodSeconds of a policy (Kubernetes: pkg/apis/autoscaling/validation, MaxPeriodSeconds).
_LONGEST_PERIOD: Duration = seconds(1800)
_UP_FACTOR, _UP_MINIMUM = 2, 4


class ScaleStep(NamedTuple):
    """The next size, and the conditions AbleToScale and ScalingLimited that explain it."""

    replicas: int
    able_to_scale: tuple[str, str]
    is_limited: bool
    scaling_limited: tuple[str, str]


class ReplicaBounds(NamedTuple):
    """The minimum and maximum number of replicas."""

    min_replicas: int
    max_replicas: int


_READY = "ReadyForNewScale", "recommended size matches current size"
_STABILIZED_UP = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_STABILIZED_DOWN = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_WITHIN = "DesiredWithinRange", "the desired count is within the acceptable range"
_TOO_MANY = "TooManyReplicas", "the desired replica count is more than the maximum replica count"
_TOO_FEW = "TooFewReplicas", "the desired replica count is less than the minimum replica count"
_TOO_FAST_UP = "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"
_TOO_FAST_DOWN = "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"

_History = list[tuple[Instant, int]]


class ScaleHistory:
    """Recent recommendations and size changes of one target."""

    def __init__(self, size: int, now: Instant) -> None:
        self._recommendations: _History = [(now, size)]
        self._ups: _History = []
        self._downs: _History = []

    def next_step(
        self, size: int, desired: int, bounds: ReplicaBounds, behaviour: KubeObject | None, now: Instant
    ) -> ScaleStep:
        """Return the next size on the way from `size` to `desired`, and record the recommendation."""
        if behaviour is None:
            stabilized, able = self._stabilize_by_default(desired, now)
            allowed, limit = _limit_rate_by_default(size, stabilized, bounds)
        else:
            stabilized, able = self._stabilize(size, desired, behaviour, now)
            allowed, limit = self._limit_rate(size, stabilized, bounds, behaviour, now)
        return ScaleStep(allowed, _READY if stabilized == desired else able, allowed != stabilized, limit)

    def record_change(self, size: int, replicas: int, now: Instant) -> None:
        """Record a change of size, for as long as a policy may need it."""
        changes = self._ups if replicas > size else self._downs
        changes[:] = [change for change in changes if change[0] >= now - _LONGEST_PERIOD]
        changes.append((now, abs(replicas - size)))

    def _stabilize_by_default(self, desired: int, now: Instant) -> tuple[int, tuple[str, str]]:
        # Kubernetes: stabilizeRecommendation.
        recent = [
            recommendation for recommendation in self._recommendations if recommendation[0] >= now - _DOWNSCALE_WINDOW
        ]
        self._recommendations = [*recent, (now, desired)]
        return max((desired, *(replicas for _, replicas in recent))), _STABILIZED_DOWN

    def _stabilize(self, size: int, desired: int, behaviour: KubeObject, now: Instant) -> tuple[int, tuple[str, str]]:
        # Kubernetes: stabilizeRecommendationWithBehaviors.
        up_window = seconds(behaviour["scaleUp"].get("stabilizationWindowSeconds") or 0)
        down_s = behaviour["scaleDown"].get("stabilizationWindowSeconds")
        down_window = _DOWNSCALE_WINDOW if down_s is None else seconds(down_s)
        recommendations = self._recommendations
        lowest = min((desired, *(replicas for at, replicas in recommendations if at > now - up_window)))
        highest = max((desired, *(replicas for at, replicas in recommendations if at > now - down_window)))
        oldest = now - max(up_window, down_window)
        self._recommendations = [*((at, replicas) for at, replicas in recommendations if at >= oldest), (now, desired)]
        return min(max(size, lowest), highest), _STABILIZED_UP if desired >= size else _STABILIZED_DOWN

    def _limit_rate(
        self, size: int, stabilized: int, bounds: ReplicaBounds, behaviour: KubeObject, now: Instant
    ) -> tuple[int, tuple[str, str]]:
        # Kubernetes: convertDesiredReplicasWithBehaviorRate.
        if stabilized > size:
            rate_limit = max(size, self._rate_limit(size, behaviour["scaleUp"], now, is_up=True))
            maximum, limit = (
                (rate_limit, _TOO_FAST_UP) if bounds.max_replicas > rate_limit else (bounds.max_replicas, _TOO_MANY)
            )
            return (maximum, limit) if stabilized > maximum else (stabilized, _WITHIN)
        if stabilized < size:
            rate_limit = min(size, self._rate_limit(size, behaviour["scaleDown"], now, is_up=False))
            minimum, limit = (
                (rate_limit, _TOO_FAST_DOWN) if bounds.min_replicas < rate_limit else (bounds.min_replicas, _TOO_FEW)
            )
            return (minimum, limit) if stabilized < minimum else (stabilized, _WITHIN)
        return stabilized, _WITHIN

    def _rate_limit(self, size: int, rules: KubeObject, now: Instant, *, is_up: bool) -> int:
        """Return the furthest size that the policies of one direction allow.

        Kubernetes: calculateScaleUpLimitWithScalingRules.
        """
        choice = rules.get("selectPolicy", "Max")
        if choice == "Disabled":
            return size
        limits = [_policy_limit(self._size_before(size, policy, now), policy, is_up) for policy in rules["policies"]]
        # selectPolicy Max takes the largest change: upwards the highest, downwards the lowest size. Min is the reverse.
        return max(limits) if (choice == "Max") == is_up else min(limits)

    def _size_before(self, size: int, policy: KubeObject, now: Instant) -> int:
        """Return the size at the start of a policy's period (Kubernetes: getReplicasChangePerPeriod)."""
        start = now - seconds(policy["periodSeconds"])
        return size - _sum_after(self._ups, start) + _sum_after(self._downs, start)


def _limit_rate_by_default(size: int, stabilized: int, bounds: ReplicaBounds) -> tuple[int, tuple[str, str]]:
    # Kubernetes: convertDesiredReplicasWithRules.
    rate_limit = max(_UP_FACTOR * size, _UP_MINIMUM)
    maximum, limit = (
        (rate_limit, _TOO_FAST_UP) if bounds.max_replicas > rate_limit else (bounds.max_replicas, _TOO_MANY)
    )
    if stabilized < bounds.min_replicas:
        return bounds.min_replicas, _TOO_FEW
    return (maximum, limit) if stabilized > maximum else (stabilized, _WITHIN)


def _policy_limit(start: int, policy: KubeObject, is_up: bool) -> int:
    value = policy["value"]
    if policy["type"] == "Pods":
        return int(start + value if is_up else start - value)
    # Rounds up when scaling up; otherwise a small target would never grow.
    return math.ceil(start * (1 + value / 100)) if is_up else int(start * (1 - value / 100))


def _sum_after(changes: Iterable[tuple[Instant, int]], start: int) -> int:
    return sum(change for at, change in changes if at > start)
