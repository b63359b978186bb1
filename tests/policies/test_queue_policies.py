"""Policies without reservations: fcfs, sjf, first-fit, best-fit, worst-fit and random."""

from __future__ import annotations

import pytest
from tests.policies.conftest import TinyCluster, a_job, nodes, whole

from batkube.policies.fcfs import Fcfs
from batkube.policies.interface import Policy
from batkube.policies.scan import BestFit, FirstFit, RandomPolicy, WorstFit
from batkube.policies.sjf import Sjf
from batkube.workloads.model import Job


def blocked_head() -> list[Job]:
    """A job on 3 of 4 machines, then one that needs all 4, and a small one that would fit beside the first."""
    return [
        a_job("first", 3, 10),
        a_job("large", 4, 10, submit_s=1),
        a_job("small", 1, 5, submit_s=2),
    ]


def test_the_head_blocks_a_job_that_would_fit_under_fcfs() -> None:
    cluster = TinyCluster(whole(4)).run(Fcfs(), blocked_head())

    assert cluster.starts_s == {"first": 0, "large": 10, "small": 20}


def test_fcfs_starts_all_jobs_that_fit_on_the_lowest_machines() -> None:
    cluster = TinyCluster(whole(4)).run(Fcfs(), [a_job(name, 2, 10) for name in "abc"])

    assert cluster.starts_s == {"a": 0, "b": 0, "c": 10}
    assert cluster.machines == {"a": (0, 1), "b": (2, 3), "c": (0, 1)}


@pytest.mark.parametrize("policy", [FirstFit, BestFit, WorstFit, RandomPolicy])
def test_scan_policies_skip_a_job_that_does_not_fit(policy: type[Policy]) -> None:
    cluster = TinyCluster(whole(4)).run(policy(), blocked_head())

    assert cluster.starts_s == {"first": 0, "small": 2, "large": 10}


@pytest.mark.parametrize("policy", [FirstFit, BestFit, WorstFit, RandomPolicy])
def test_scan_policies_start_jobs_in_order_of_submission(policy: type[Policy]) -> None:
    jobs = [a_job("running", 4, 10), *(a_job(name, 2, 10, submit_s=1) for name in "abc")]

    cluster = TinyCluster(whole(4)).run(policy(), jobs)

    assert cluster.starts_s == {"running": 0, "a": 10, "b": 10, "c": 20}


def test_a_skipped_job_is_tried_again_when_a_job_ends() -> None:
    jobs = [a_job("a", 2, 5), a_job("b", 2, 20), a_job("wide", 4, 1, submit_s=1), a_job("c", 2, 10, submit_s=2)]

    cluster = TinyCluster(whole(4)).run(FirstFit(), jobs)

    assert cluster.starts_s == {"a": 0, "b": 0, "c": 5, "wide": 20}


def test_best_fit_keeps_nodes_empty_and_worst_fit_balances_the_load() -> None:
    jobs = [a_job(name, 1, 10, requests=(("cpu", 1000),)) for name in "abc"]
    room = nodes({"cpu": 4000}, {"cpu": 4000}, {"cpu": 4000})

    packed = TinyCluster(room).run(BestFit(), jobs)
    spread = TinyCluster(room).run(WorstFit(), jobs)

    assert packed.machines == {"a": (0,), "b": (0,), "c": (0,)}
    assert spread.machines == {"a": (0,), "b": (1,), "c": (2,)}


def test_random_draws_machines_from_the_runs_seed() -> None:
    jobs = [a_job(str(number), 2, 10, submit_s=number) for number in range(30)]

    first, second = (TinyCluster(whole(40)).run(RandomPolicy(), jobs) for _ in range(2))

    assert first.machines == second.machines
    assert first.machines != TinyCluster(whole(40)).run(FirstFit(), jobs).machines


def test_sjf_starts_the_shortest_estimate_first_and_equal_ones_in_order_of_submission() -> None:
    jobs = [
        a_job("running", 4, 10),
        a_job("long", 4, 1, submit_s=1, walltime_s=90),
        a_job("short", 4, 5, submit_s=2, walltime_s=20),
        a_job("short too", 4, 5, submit_s=3, walltime_s=20),
    ]

    cluster = TinyCluster(whole(4)).run(Sjf(), jobs)

    assert cluster.starts_s == {"running": 0, "short": 10, "short too": 15, "long": 20}


def test_the_shortest_job_blocks_a_longer_one_that_would_fit_under_sjf() -> None:
    jobs = [a_job("running", 3, 10), a_job("short", 4, 5, submit_s=1), a_job("long", 1, 6, submit_s=2)]

    cluster = TinyCluster(whole(4)).run(Sjf(), jobs)

    assert cluster.starts_s == {"running": 0, "short": 10, "long": 15}
