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


def eviction_times(pace: EvictionRateLimiter, there: list[KubeObject], count: int = 3) -> list[float | None]:
    """Return after how many seconds the next nodes in the last node's zone may be evicted."""
    instants: list[float | None] = []
    for _ in range(count):
        turn = pace.next_eviction_at(there[-1])
        instants.append(None if turn is None else (turn - NOW) / 1e9)
        if turn is not None:
            pace.record_eviction(there[-1], turn)
    return instants


@pytest.mark.parametrize(
    ("ready", "lost", "expected"),
    [
        (9, 1, [0, 10, 20]),
        (1, 2, [0, 10, 20]),  # two are never too many
        (5, 5, [0, 10, 20]),
        (4, 5, [None, None, None]),  # 55 of a hundred are
        (22, 29, [0, 100, 200]),  # of more than fifty, one in a hundred seconds
        (22, 28, [None, None, None]),
    ],
)
def test_evictions_in_a_zone_slow_down_or_stop_when_too_many_nodes_fail(
    ready: int, lost: int, expected: list[float | None]
) -> None:
    pace, there = EvictionRateLimiter(NOW), nodes(ready, lost)
    pace.update(there, NOW)

    assert eviction_times(pace, there) == expected


def test_a_failed_zone_is_evicted_unless_all_zones_failed() -> None:
    pace, lost = EvictionRateLimiter(NOW), nodes(0, 5)
    pace.update([*nodes(1, 3, "b"), *lost], NOW)
    assert (pace.is_fully_disrupted, eviction_times(pace, lost)) == (False, [0, 10, 20])

    pace.update([*nodes(0, 4, "b"), *lost], NOW)
    assert (pace.is_fully_disrupted, eviction_times(pace, lost)) == (True, [None, None, None])


def test_after_a_stop_the_first_eviction_waits_for_its_interval() -> None:
    pace = EvictionRateLimiter(NOW)
    pace.update(nodes(1, 4), NOW)
    pace.update(nodes(4, 1), NOW)

    assert eviction_times(pace, nodes(4, 1)) == [10, 20, 30]


def test_each_zone_of_each_region_has_its_own_rate() -> None:
    pace, here, there = EvictionRateLimiter(NOW), nodes(5, 1), nodes(5, 1, "b")
    pace.update([*here, *there], NOW)

    assert eviction_times(pace, here) == eviction_times(pace, there) == [0, 10, 20]
    labels = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
    assert zone_of({"metadata": {"labels": labels}}) != zone_of(here[0])
    assert zone_of({"metadata": {}}) == ""
