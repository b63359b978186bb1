"""Which jobs overtook a waiting one, and by which rule."""

from __future__ import annotations

import pytest

from batkube.kernel.instants import Duration, Instant
from batkube.kernel.quantities import CPU, MEMORY
from batkube.outputs.explain.evidence import Evidence
from batkube.outputs.explain.overtaking import overtakers_of
from batkube.outputs.explain.scheduling_rules import rule_of
from batkube.outputs.explain.units import Unit
from batkube.outputs.playback.model import RecordedPod
from batkube.outputs.playback.playback import Playback


@pytest.fixture
def evidence(shared_nodes: Playback) -> Evidence:
    """Evidence without a recorded reason for the units of these tests."""
    return Evidence(shared_nodes)


def a_unit(name: str, queued: int, bound: int | None, **more: object) -> Unit:
    cpu, memory = more.pop("cpu", 1000), more.pop("memory", 0)
    requests = {CPU: cpu, MEMORY: memory}
    at = None if bound is None else Instant(bound)
    pod = RecordedPod(0, name, None, "n", Instant(queued), at, at, None, "Running", 0, "", "", requests)  # type: ignore[arg-type]
    return Unit(name, 0, Instant(queued), (pod,), 1, **more)  # type: ignore[arg-type]


def rules(unit: Unit, *others: Unit, scheduler: str, evidence: Evidence) -> dict[str, str]:
    overtakers = overtakers_of([unit, *others], unit, rule_of(scheduler), evidence)
    return {overtaker.name: overtaker.rule for overtaker in overtakers}


def test_only_units_that_were_queued_later_and_placed_earlier_overtake(evidence: Evidence) -> None:
    unit = a_unit("me", 10, 50)
    others = [
        a_unit("earlier", 5, 20),
        a_unit("overtaker", 15, 20),
        a_unit("later", 15, 50),
        a_unit("never", 15, None),
    ]

    assert list(rules(unit, *others, scheduler="policy:easy", evidence=evidence)) == ["overtaker"]


def test_overtakers_of_a_unit_that_was_never_placed_are_in_order_of_time(evidence: Evidence) -> None:
    unit = a_unit("me", 10, None)

    found = rules(unit, a_unit("b", 12, 40), a_unit("a", 13, 20), scheduler="policy:easy", evidence=evidence)
    assert list(found) == ["a", "b"]


@pytest.mark.parametrize(
    ("mine", "theirs", "scheduler", "rule"),
    [
        ({}, {"priority": 5}, "kube-scheduler@1.34.4", "its priority is higher: 5 > 0"),
        ({}, {"cpu": 500}, "kube-scheduler@1.34.4", "it requests less: cpu 0.5 < 1"),
        ({"memory": 8}, {"cpu": 500, "memory": 9}, "kube-scheduler@1.34.4", "its pods fitted, or came first"),
        (
            {"estimate": Duration(90 * 10**9)},
            {"estimate": Duration(60 * 10**9)},
            "policy:sjf",
            "its estimate is shorter: 1 min < 1 min 30 s",
        ),
        ({}, {"priority": 5}, "policy:easy", "EASY backfilling: it did not delay the head of the queue"),
    ],
    ids=["priority", "smaller", "larger in one resource", "estimate", "a policy without priorities"],
)
def test_the_rule_is_that_of_the_scheduler(
    mine: dict[str, object], theirs: dict[str, object], scheduler: str, rule: str, evidence: Evidence
) -> None:
    unit, other = a_unit("me", 10, 50, **mine), a_unit("other", 15, 20, **theirs)

    assert rules(unit, other, scheduler=scheduler, evidence=evidence)["other"].startswith(rule)
