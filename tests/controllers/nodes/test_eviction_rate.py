"""The eviction rate of failed nodes by zone (Kubernetes: pkg/controller/nodelifecycle, ComputeZoneState)."""

from __future__ import annotations

import pytest

from batkube.cluster.store import KubeObject
from batkube.controllers.nodes.eviction_rate import EvictionRateLimiter, zone_of
from batkube.kernel.instants import Instant, seconds

NOW = Instant(seconds(1000))


def nodes(ready: int, lost: int, zone: str = "a") -> list[KubeObject]:
    statuses = ["True"] * ready + ["Unknown"] * lost
    return [
        {
            "metadata": {"name": f"{zone}-{number}", "labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }
        for number, status in enumerate(statuses)
    ]


def eviction_times(limiter: EvictionRateLimiter, zone_nodes: list[KubeObject], count: int = 3) -> list[float | None]:
    """Return after how many seconds the next nodes in the last node's zone may be evicted."""
    instants: list[float | None] = []
    for _ in range(count):
        instant = limiter.next_eviction_at(zone_nodes[-1])
        instants.append(None if instant is None else (instant - NOW) / 1e9)
        if instant is not None:
            limiter.record_eviction(zone_nodes[-1], instant)
    return instants


@pytest.mark.parametrize(
    ("ready", "lost", "expected"),
    [
        (9, 1, [0, 10, 20]),
        (1, 2, [0, 10, 20]),  # two failed nodes never count as too many
        (5, 5, [0, 10, 20]),
        (4, 5, [None, None, None]),  # more than 55 % count as too many
        (22, 29, [0, 100, 200]),  # in a zone of more than fifty nodes, the rate is a tenth
        (22, 28, [None, None, None]),
    ],
)
def test_evictions_in_a_zone_slow_down_or_stop_when_too_many_nodes_fail(
    ready: int, lost: int, expected: list[float | None]
) -> None:
    limiter, zone_nodes = EvictionRateLimiter(NOW), nodes(ready, lost)
    limiter.update(zone_nodes, NOW)

    assert eviction_times(limiter, zone_nodes) == expected


def test_a_failed_zone_is_evicted_unless_all_zones_failed() -> None:
    limiter, lost = EvictionRateLimiter(NOW), nodes(0, 5)
    limiter.update([*nodes(1, 3, "b"), *lost], NOW)
    assert (limiter.is_fully_disrupted, eviction_times(limiter, lost)) == (False, [0, 10, 20])

    limiter.update([*nodes(0, 4, "b"), *lost], NOW)
    assert (limiter.is_fully_disrupted, eviction_times(limiter, lost)) == (True, [None, None, None])


def test_after_a_stop_the_first_eviction_waits_for_its_interval() -> None:
    limiter = EvictionRateLimiter(NOW)
    limiter.update(nodes(1, 4), NOW)
    limiter.update(nodes(4, 1), NOW)

    assert eviction_times(limiter, nodes(4, 1)) == [10, 20, 30]


def test_each_zone_of_each_region_has_its_own_rate() -> None:
    limiter, other_nodes, zone_nodes = EvictionRateLimiter(NOW), nodes(5, 1), nodes(5, 1, "b")
    limiter.update([*other_nodes, *zone_nodes], NOW)

    assert eviction_times(limiter, other_nodes) == eviction_times(limiter, zone_nodes) == [0, 10, 20]
    labels = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
    assert zone_of({"metadata": {"labels": labels}}) != zone_of(other_nodes[0])
    assert zone_of({"metadata": {}}) == ""
