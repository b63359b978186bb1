"""How fast an autoscaler may go where it wants to: between its bounds, not faster than allowed, not to and fro.

Recent recommendations are remembered: before pods are taken away the highest of them counts, so that a lull does not
cost what the next wave needs. Changes are remembered too, for rules such as "four pods a minute at most". An
autoscaler without rules has these: no fewer than any recommendation of five minutes asked for, at most twice as many or
four at once. Kubernetes: pkg/controller/podautoscaler/horizontal.go, normalizeDesiredReplicas and what follows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, seconds

#: --horizontal-pod-autoscaler-downscale-stabilization.
_DOWNSCALE_WINDOW: Duration = seconds(300)
#: No rule's periodSeconds is longer (Kubernetes: pkg/apis/autoscaling/validation, MaxPeriodSeconds).
_LONGEST_PERIOD: Duration = seconds(1800)
_UP_FACTOR, _UP_MINIMUM = 2, 4


class ScaleStep(NamedTuple):
    """Where to go now, and what the conditions AbleToScale and ScalingLimited say of it."""

    replicas: int
    able_to_scale: tuple[str, str]
    is_limited: bool
    scaling_limited: tuple[str, str]


class ReplicaBounds(NamedTuple):
    """The fewest and the most replicas."""

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
    """What was recommended for one target, and by how much its size was changed, of late."""

    def __init__(self, size: int, now: Instant) -> None:
        self._recommendations: _History = [(now, size)]
        self._ups: _History = []
        self._downs: _History = []

    def next_step(
        self, size: int, wanted: int, bounds: ReplicaBounds, behaviour: KubeObject | None, now: Instant
    ) -> ScaleStep:
        """Return where to go from `size` when `wanted` would be right, and remember that."""
        if behaviour is None:
            held, able = self._stabilize_by_default(wanted, now)
            allowed, limit = _limit_rate_by_default(size, held, bounds)
        else:
            held, able = self._stabilize(size, wanted, behaviour, now)
            allowed, limit = self._limit_rate(size, held, bounds, behaviour, now)
        return ScaleStep(allowed, _READY if held == wanted else able, allowed != held, limit)

    def record_change(self, size: int, replicas: int, now: Instant) -> None:
        """Remember that the size was changed, as long as a rule may ask for it."""
        changes = self._ups if replicas > size else self._downs
        changes[:] = [change for change in changes if change[0] >= now - _LONGEST_PERIOD]
        changes.append((now, abs(replicas - size)))

    def _stabilize_by_default(self, wanted: int, now: Instant) -> tuple[int, tuple[str, str]]:
        recent = [told for told in self._recommendations if told[0] >= now - _DOWNSCALE_WINDOW]
        self._recommendations = [*recent, (now, wanted)]
        return max((wanted, *(replicas for _, replicas in recent))), _STABILIZED_DOWN

    def _stabilize(self, size: int, wanted: int, behaviour: KubeObject, now: Instant) -> tuple[int, tuple[str, str]]:
        up_window = seconds(behaviour["scaleUp"].get("stabilizationWindowSeconds") or 0)
        down_s = behaviour["scaleDown"].get("stabilizationWindowSeconds")
        down_window = _DOWNSCALE_WINDOW if down_s is None else seconds(down_s)
        told = self._recommendations
        lowest = min((wanted, *(replicas for at, replicas in told if at > now - up_window)))
        highest = max((wanted, *(replicas for at, replicas in told if at > now - down_window)))
        oldest = now - max(up_window, down_window)
        self._recommendations = [*((at, replicas) for at, replicas in told if at >= oldest), (now, wanted)]
        return min(max(size, lowest), highest), _STABILIZED_UP if wanted >= size else _STABILIZED_DOWN

    def _limit_rate(
        self, size: int, held: int, bounds: ReplicaBounds, behaviour: KubeObject, now: Instant
    ) -> tuple[int, tuple[str, str]]:
        if held > size:
            fastest = max(size, self._rate_limit(size, behaviour["scaleUp"], now, is_up=True))
            most, limit = (fastest, _TOO_FAST_UP) if bounds.max_replicas > fastest else (bounds.max_replicas, _TOO_MANY)
            return (most, limit) if held > most else (held, _WITHIN)
        if held < size:
            fastest = min(size, self._rate_limit(size, behaviour["scaleDown"], now, is_up=False))
            least, limit = (
                (fastest, _TOO_FAST_DOWN) if bounds.min_replicas < fastest else (bounds.min_replicas, _TOO_FEW)
            )
            return (least, limit) if held < least else (held, _WITHIN)
        return held, _WITHIN

    def _rate_limit(self, size: int, rules: KubeObject, now: Instant, *, is_up: bool) -> int:
        """Return how far the rules of one direction let the size go."""
        choice = rules.get("selectPolicy", "Max")
        if choice == "Disabled":
            return size
        reaches = [_policy_limit(self._size_before(size, policy, now), policy, is_up) for policy in rules["policies"]]
        # The policy with the largest change counts, upwards the highest and downwards the lowest number; or the least.
        return max(reaches) if (choice == "Max") == is_up else min(reaches)

    def _size_before(self, size: int, policy: KubeObject, now: Instant) -> int:
        """Return the size at the beginning of a policy's period."""
        start = now - seconds(policy["periodSeconds"])
        return size - _sum_after(self._ups, start) + _sum_after(self._downs, start)


def _limit_rate_by_default(size: int, held: int, bounds: ReplicaBounds) -> tuple[int, tuple[str, str]]:
    fastest = max(_UP_FACTOR * size, _UP_MINIMUM)
    most, limit = (fastest, _TOO_FAST_UP) if bounds.max_replicas > fastest else (bounds.max_replicas, _TOO_MANY)
    if held < bounds.min_replicas:
        return bounds.min_replicas, _TOO_FEW
    return (most, limit) if held > most else (held, _WITHIN)


def _policy_limit(start: int, policy: KubeObject, is_up: bool) -> int:
    value = policy["value"]
    if policy["type"] == "Pods":
        return int(start + value if is_up else start - value)
    # Upwards it is rounded up, or a small target would never grow.
    return math.ceil(start * (1 + value / 100)) if is_up else int(start * (1 - value / 100))


def _sum_after(changes: Iterable[tuple[Instant, int]], start: int) -> int:
    return sum(change for at, change in changes if at > start)
