"""Plans of containers: how long they run and how they end, by annotation, rule, command or default."""

from __future__ import annotations

from typing import Any

import pytest
from tests.execution.pod_status import status
from tests.simulated_cluster import Cluster

from batkube.execution.containers.plans import plan_of
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.instants import seconds
from batkube.workloads.container_rules.rules import ContainerBehaviour, ContainerRule


def test_annotations_take_precedence_over_rules_and_rules_over_commands(make_world: type[Cluster]) -> None:
    world = make_world(
        "1x4,16Gi", rules=[ContainerRule("", image="app", duration=parse_distribution(20), exit_code=THREE)]
    )
    spec = world.pod_spec(restart="Never")
    spec["containers"][0]["command"] = ["sleep", "5"]
    world.create("pods", {**world.pod("a"), "spec": spec})
    world.create("pods", {**world.pod("b", {"batkube.io/duration": "40"}), "spec": spec})
    world.run(19)
    assert status(world)["phase"] == "Running"
    world.run(2)
    assert status(world)["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    world.run(18)
    assert status(world, "b")["phase"] == "Running"
    world.run(2)
    assert status(world, "b")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


THREE = parse_distribution(3)
NEVER, ALWAYS = {"restartPolicy": "Never"}, {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("container", "spec", "plan"),
    [
        ({"command": ["sleep", "30"]}, ALWAYS, ContainerPlan(seconds(30))),
        ({"command": ["/bin/sleep"], "args": ["1m"]}, ALWAYS, ContainerPlan(seconds(60))),
        ({"command": ["sleep", "infinity"]}, NEVER, ContainerPlan(None)),
        ({"command": ["sh", "-c", "echo hi; sleep 5 && exit 3"]}, NEVER, ContainerPlan(seconds(5), 3)),
        ({"command": ["/bin/bash", "-ec", "sleep 2\nsleep 3\nfalse"]}, NEVER, ContainerPlan(seconds(5), 1)),
        ({"command": ["sh", "-c", "while true; do date; sleep 1; done"]}, NEVER, ContainerPlan(None)),
        ({"command": ["true"]}, NEVER, ContainerPlan(seconds(0))),
        ({"command": ["perl", "-wle", "print 1"]}, NEVER, ContainerPlan(seconds(10), has_default_length=True)),
        ({}, NEVER, ContainerPlan(seconds(10), has_default_length=True)),
        ({"image": "registry.example.com/pause:3.9"}, NEVER, ContainerPlan(None)),
        ({"image": "pause", "command": ["work"]}, NEVER, ContainerPlan(seconds(10), has_default_length=True)),
        ({}, ALWAYS, ContainerPlan(None)),
        ({"command": ["nginx"]}, ALWAYS, ContainerPlan(None)),
    ],
)
def test_a_command_determines_the_plan_of_its_container(
    container: dict[str, Any], spec: dict[str, Any], plan: ContainerPlan
) -> None:
    pod = {"metadata": {}, "spec": {**spec, "containers": [container]}}
    assert plan_of(pod, container) == plan


def test_a_rule_without_a_duration_leaves_it_a_guess() -> None:
    pod = {"metadata": {}, "spec": {**NEVER, "containers": [{}]}}
    assert plan_of(pod, {}, rule=ContainerBehaviour(exit_code=3)) == ContainerPlan(
        seconds(10), 3, has_default_length=True
    )
    assert plan_of(pod, {}, rule=ContainerBehaviour(run_time=seconds(7))) == ContainerPlan(seconds(7))


def test_annotations_take_precedence_over_the_command() -> None:
    container = {"command": ["sleep", "30"]}
    annotations = {"batkube.io/run-time": "5s", "batkube.io/exit-code": "7"}
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}
    assert plan_of(pod, container) == ContainerPlan(seconds(5), 7)
