"""Sizes of ReplicaSets during a rollout."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster

from batkube.controllers.apps import rollout_plan as plan


def test_scaling_during_a_rollout_keeps_the_proportions(world: Cluster) -> None:
    def replica_set(name: str, count: int) -> dict[str, Any]:
        annotations = {plan.MAX_REPLICAS: "13", plan.DESIRED_REPLICAS: "10"}
        metadata = {"name": name, "creationTimestamp": "2000-01-01T00:00:00Z", "annotations": annotations}
        return {"metadata": metadata, "spec": {"replicas": count}, "status": {}}

    deployment = world.deployment(replicas=20)
    deployment["spec"]["strategy"]["rollingUpdate"] = {"maxSurge": 3, "maxUnavailable": 2}
    changed = plan.proportional_replicas(deployment, [replica_set("a", 8), replica_set("b", 5)])
    assert {each["metadata"]["name"]: count for each, count in changed} == {"a": 14, "b": 9}
    assert sum(count for _, count in changed) == 23
