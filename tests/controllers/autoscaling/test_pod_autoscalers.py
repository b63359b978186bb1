"""HorizontalPodAutoscalers scale a Deployment."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated_cluster import Cluster

from batkube.kernel.instants import seconds
from batkube.workloads.container_rules.rules import ContainerRule
from batkube.workloads.container_rules.usage_curves import UsageCurve

#: Busy for twenty minutes, then idle.
BUSY = UsageCurve(((seconds(0), 800), (seconds(1200), 800), (seconds(1200), 100)))
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def autoscaler(name: str = "web", target: str = "web", **spec: object) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 6, "metrics": [CPU], **spec},
    }


def cluster(*objects: dict[str, Any]) -> Cluster:
    """Return a cluster with busy containers, a Deployment of two replicas and these autoscalers."""
    world = Cluster("4x4,16Gi", rules=[ContainerRule("rules.yaml: [0]", image="app", cpu=BUSY)])
    world.create("deployments.apps", world.deployment(replicas=2))
    for one in objects:
        world.create("horizontalpodautoscalers.autoscaling", one)
    return world


def size(world: Cluster) -> int:
    replicas: int = world.get("deployments.apps", "default/web")["spec"]["replicas"]
    return replicas


def status(world: Cluster, name: str = "web") -> dict[str, Any]:
    result: dict[str, Any] = world.get("horizontalpodautoscalers.autoscaling", f"default/{name}")["status"]
    return result


def conditions(world: Cluster, name: str = "web") -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status(world, name)["conditions"]}


def test_a_target_scales_up_under_load_and_down_five_minutes_later() -> None:
    world = cluster(autoscaler())
    world.run(14)
    assert size(world) == 2
    world.run(3)
    assert size(world) == 4, "usage is 80 % of the requests, the target is 50 %"
    world.run(30)
    assert size(world) == 6
    assert conditions(world)["ScalingLimited"] == ("True", "TooManyReplicas")
    assert status(world)["currentMetrics"][0]["resource"]["current"] == {
        "averageUtilization": 80,
        "averageValue": "800m",
    }
    world.run(1200)
    assert size(world) == 6
    assert conditions(world)["AbleToScale"] == ("True", "ScaleDownStabilized")
    world.run(330)
    assert size(world) == 2, "usage is 10 % of the requests of six pods, the target is 50 %"
    assert world.events("SuccessfulRescale")[-1] == "New size: 2; reason: All metrics below target"


def test_a_shared_load_is_distributed_over_enough_pods() -> None:
    """The load is two cores, five after ten minutes, one after half an hour; the target is half a core per pod."""
    load = UsageCurve(
        ((seconds(0), 2000), (seconds(600), 2000), (seconds(600), 5000), (seconds(1800), 5000), (seconds(1800), 1000))
    )
    world = Cluster("4x4,16Gi", rules=[ContainerRule("rules.yaml: [0]", image="app", cpu_load=load)])
    world.create("deployments.apps", world.deployment(replicas=1))
    world.create("horizontalpodautoscalers.autoscaling", autoscaler(maxReplicas=20))
    sizes = []
    for length_s in (300, 600, 1500):
        world.run(length_s)
        sizes.append(size(world))
    assert sizes == [4, 10, 2]
    assert status(world)["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 50


@pytest.mark.parametrize(
    ("spec", "kind", "reason"),
    [
        (
            {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}},
            "AbleToScale",
            "FailedGetScale",
        ),
        (
            {"metrics": [{"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"averageValue": "1"}}}]},
            "ScalingActive",
            "FailedGetPodsMetric",
        ),
        (
            {
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}},
                    }
                ]
            },
            "ScalingActive",
            "FailedGetResourceMetric",
        ),
    ],
)
def test_an_unavailable_metric_is_reported_and_changes_nothing(spec: dict[str, Any], kind: str, reason: str) -> None:
    world = cluster(autoscaler(**spec))
    world.run(100)
    assert conditions(world)[kind] == ("False", reason)
    assert size(world) == 2


def test_two_autoscalers_of_the_same_pods_are_ambiguous() -> None:
    world = cluster(autoscaler(), autoscaler("twin"))
    world.run(100)
    assert size(world) == 4, "the first one scaled before the second one was reconciled"
    for name in ("web", "twin"):
        assert conditions(world, name)["ScalingActive"] == ("False", "AmbiguousSelector")
    assert "are controlled by multiple HPAs: [{twin default} {web default}]" in world.events("AmbiguousSelector")[0]


def test_a_target_out_of_bounds_is_scaled_to_the_bounds() -> None:
    world = cluster(autoscaler(minReplicas=5))
    world.run(16)
    assert size(world) == 5
    assert world.events("SuccessfulRescale") == [
        "New size: 5; reason: Current number of replicas below Spec.MinReplicas"
    ]


def test_a_target_with_zero_replicas_is_not_scaled() -> None:
    world = cluster(autoscaler())
    world.change("deployments.apps", "default/web", replicas=0)
    world.run(60)
    assert size(world) == 0
    assert conditions(world)["ScalingActive"] == ("False", "ScalingDisabled")


def test_a_rejected_size_is_reported() -> None:
    world = cluster(autoscaler())
    world.api.forbidden["deployments.apps"] = "no"
    world.run(16)
    assert conditions(world)["AbleToScale"] == ("False", "FailedUpdateScale")
    assert world.events("FailedRescale") == [
        "New size: 4; reason: cpu resource utilization (percentage of request) above target; error: no"
    ]
