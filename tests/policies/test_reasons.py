"""The reasons that policies give for their decisions: true, and without influence on them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.policies.conftest import TinyCluster, a_job, whole
from tests.policies.test_backfilling import MACHINES, schedule, workloads

from batkube.kernel.instants import Instant, seconds
from batkube.policies.conservative import Conservative
from batkube.policies.easy import Easy
from batkube.policies.fcfs import Fcfs
from batkube.policies.interface import Policy
from batkube.policies.priority import Priority
from batkube.policies.reasons import Backfilled, NextInOrder, Preempted, Reason, Reserved
from batkube.policies.sjf import Sjf
from batkube.workloads.model import Job

POLICIES = (Fcfs, Sjf, Priority, Easy, Conservative)


def at(time_s: float) -> Instant:
    return Instant(seconds(time_s))


def reasons_of(policy: Policy, jobs: list[Job], machines: int = 4) -> list[tuple[float, str, str, Reason | str]]:
    return TinyCluster(whole(machines), is_explained=True).run(policy, jobs).reasons


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=workloads())
@settings(max_examples=30)
def test_a_policy_decides_the_same_with_and_without_reasons(policy: type[Policy], jobs: list[Job]) -> None:
    explained = TinyCluster(whole(MACHINES), is_explained=True).run(policy(), jobs)
    plain = TinyCluster(whole(MACHINES)).run(policy(), jobs)

    assert (explained.events, schedule(explained)) == (plain.events, schedule(plain))
    assert plain.reasons == []


def test_easy_names_the_job_that_holds_the_machines_reserved_for_the_head() -> None:
    jobs = [a_job("first", 3, 10), a_job("head", 4, 10, submit_s=1)]

    assert reasons_of(Easy(), jobs) == [(1, "Wait", "head", Reserved(at(10), 0b1111, ("w!first",)))]


def test_easy_says_why_a_backfilled_job_does_not_delay_the_head() -> None:
    jobs = [
        a_job("first", 2, 10),
        a_job("head", 3, 10, submit_s=1),
        a_job("short", 1, 8, submit_s=2),
        a_job("aside", 1, 30, submit_s=2),
    ]

    starts = {name: reason for _, kind, name, reason in reasons_of(Easy(), jobs, 4) if kind == "Start"}
    assert starts == {
        "short": Backfilled("w!head", at(10), at(10), is_short=True),
        "aside": Backfilled("w!head", at(10), at(32), is_short=False),
    }


def test_conservative_names_the_planned_jobs_before_each_slot() -> None:
    jobs = [a_job("first", 4, 10), a_job("second", 4, 5, submit_s=1), a_job("third", 4, 5, submit_s=2)]

    assert reasons_of(Conservative(), jobs)[:2] == [
        (1, "Wait", "second", Reserved(at(10), 0b1111, ("w!first",))),
        (2, "Wait", "third", Reserved(at(15), 0b1111, ("w!second",))),
    ]


@pytest.mark.parametrize(
    ("policy", "order", "first"), [(Fcfs, "submission", "b"), (Sjf, "estimate", "c"), (Priority, "priority", "d")]
)
def test_policies_with_a_strict_order_name_the_job_that_blocks_the_others(
    policy: type[Policy], order: str, first: str
) -> None:
    jobs = [
        a_job("a", 3, 10, priority=9),
        a_job("b", 2, 8, submit_s=1),
        a_job("c", 2, 3, submit_s=1),
        a_job("d", 2, 9, submit_s=1, priority=5),
    ]

    assert reasons_of(policy(), jobs)[0] == (1, "Wait", first, NextInOrder(order, 2, 1))


def test_an_eviction_names_the_more_important_job() -> None:
    jobs = [a_job("low", 4, 10, priority=1), a_job("high", 4, 5, submit_s=2, priority=7)]

    assert reasons_of(Priority(), jobs)[0] == (2, "Evict", "low", Preempted("w!high", 1, 7))
