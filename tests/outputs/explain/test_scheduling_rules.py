"""The rules of schedulers by name."""

from __future__ import annotations

import pytest

from batkube.outputs.explain.scheduling_rules import rule_of
from batkube.policies.registry.catalogue import policy_names


@pytest.mark.parametrize("name", [name for name, _ in policy_names()])
def test_every_policy_of_batkube_has_a_rule_of_its_own(name: str) -> None:
    assert rule_of(f"policy:{name}") != rule_of("policy:./mine.py:Mine")


def test_only_orders_that_block_all_others_are_strict() -> None:
    strict = {name: rule_of(f"policy:{name}").strict_order for name in ("fcfs", "sjf", "priority", "easy", "first-fit")}

    assert strict == {"fcfs": "submission", "sjf": "estimate", "priority": "priority", "easy": "", "first-fit": ""}


def test_backfilling_policies_reserve_for_the_first_job_or_for_all() -> None:
    assert rule_of("policy:easy").reserves_for == "first"
    assert rule_of("policy:conservative").reserves_for == "any"


def test_a_program_is_not_a_policy_of_the_same_name() -> None:
    assert rule_of("easy") == rule_of("kube-scheduler@1.34.4") != rule_of("policy:easy")
