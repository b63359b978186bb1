"""Priority and preemption."""

from __future__ import annotations

from tests.policies.conftest import TinyCluster, a_job, nodes, whole

from batkube.policies.priority import Priority


def test_the_most_important_job_starts_first_and_equal_ones_in_order_of_submission() -> None:
    jobs = [
        a_job("running", 4, 10, priority=9),
        a_job("low", 4, 10, submit_s=1, priority=1),
        a_job("high", 4, 10, submit_s=2, priority=5),
        a_job("high too", 4, 10, submit_s=3, priority=5),
    ]

    cluster = TinyCluster(whole(4)).run(Priority(), jobs)

    assert cluster.starts_s == {"running": 0, "high": 10, "high too": 20, "low": 30}


def test_a_less_important_job_does_not_overtake_one_that_does_not_fit() -> None:
    jobs = [
        a_job("running", 3, 10, priority=9),
        a_job("high", 4, 10, submit_s=1, priority=5),
        a_job("low", 1, 1, submit_s=2, priority=1),
    ]

    cluster = TinyCluster(whole(4)).run(Priority(), jobs)

    assert cluster.starts_s == {"running": 0, "high": 10, "low": 20}


def test_a_job_evicts_the_least_important_and_of_equals_the_latest_started() -> None:
    jobs = [
        a_job("old", 1, 90, priority=1),
        a_job("middle", 1, 90, submit_s=1, priority=2),
        a_job("young", 1, 90, submit_s=2, priority=1),
        a_job("high", 1, 10, submit_s=3, priority=5),
    ]

    cluster = TinyCluster(whole(3)).run(Priority(), jobs)

    assert [entry for entry in cluster.events if entry[1] == "evict"] == [(3, "evict", "young")]
    assert cluster.starts_s["high"] == 3
    assert cluster.starts_s["young"] == 13


def test_jobs_whose_eviction_is_unnecessary_are_not_evicted() -> None:
    jobs = [
        a_job("small", 1, 90),
        a_job("large", 3, 90, submit_s=1),
        a_job("high", 3, 10, submit_s=2, priority=5),
    ]

    cluster = TinyCluster(whole(4)).run(Priority(), jobs)

    assert [name for _, kind, name in cluster.events if kind == "evict"] == ["large"]


def test_nothing_is_evicted_if_that_does_not_suffice() -> None:
    jobs = [
        a_job("equal", 3, 20, priority=5),
        a_job("low", 1, 20, priority=1),
        a_job("high", 2, 10, submit_s=1, priority=5),
    ]

    cluster = TinyCluster(whole(4)).run(Priority(), jobs)

    assert [kind for _, kind, _ in cluster.events if kind == "evict"] == []
    assert cluster.starts_s["high"] == 20


def test_without_preemption_the_most_important_job_waits() -> None:
    jobs = [a_job("low", 4, 20), a_job("high", 1, 10, submit_s=1, priority=5)]

    cluster = TinyCluster(whole(4)).run(Priority(preempt=False), jobs)

    assert cluster.starts_s == {"low": 0, "high": 20}


def test_an_evicted_job_keeps_its_place_among_equals() -> None:
    jobs = [
        a_job("evicted", 4, 20, submit_s=0),
        a_job("later", 4, 20, submit_s=1),
        a_job("high", 4, 10, submit_s=2, priority=5),
    ]

    cluster = TinyCluster(whole(4)).run(Priority(), jobs)

    assert cluster.starts_s == {"high": 2, "evicted": 12, "later": 32}


def test_pods_are_evicted_from_a_shared_node() -> None:
    half = (("cpu", 2000),)
    jobs = [
        a_job("a", 1, 90, requests=half),
        a_job("b", 1, 90, submit_s=1, requests=half),
        a_job("high", 1, 10, submit_s=2, priority=5, requests=half),
    ]

    cluster = TinyCluster(nodes({"cpu": 4000})).run(Priority(), jobs)

    assert [name for _, kind, name in cluster.events if kind == "evict"] == ["b"]
    assert cluster.starts_s["high"] == 2
