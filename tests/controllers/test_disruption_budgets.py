"""The disruptions that a PodDisruptionBudget allows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated_cluster import Cluster


def budget(**spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def status(world: Cluster) -> dict[str, Any]:
    result: dict[str, Any] = world.get("poddisruptionbudgets.policy", "default/web")["status"]
    return result


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 3}, 3, 1),
        ({"minAvailable": "50%"}, 2, 2),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "30%"}, 2, 2),
        ({"minAvailable": 9}, 9, 0),
    ],
)
def test_a_budget_allows_disruptions_of_surplus_healthy_pods(
    world: Cluster, spec: dict[str, object], desired: int, allowed: int
) -> None:
    world.create("deployments.apps", world.deployment(replicas=4))
    world.create("poddisruptionbudgets.policy", budget(**spec))
    world.run(1)
    result = status(world)
    assert (result["currentHealthy"], result["desiredHealthy"], result["expectedPods"]) == (
        4,
        desired,
        4,
    )
    assert result["disruptionsAllowed"] == allowed
    (condition,) = result["conditions"]
    assert condition["status"] == ("True" if allowed else "False")
    assert condition["reason"] == ("SufficientPods" if allowed else "InsufficientPods")


def test_an_eviction_counts_until_the_pod_is_deleted(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment(replicas=2))
    world.create("poddisruptionbudgets.policy", budget(maxUnavailable=1))
    world.run(1)
    name = world.pods()[0]["metadata"]["name"]
    result = world.get("poddisruptionbudgets.policy", "default/web")
    at = world.pods()[0]["metadata"]["creationTimestamp"]
    updated = {**result, "status": {**result["status"], "disruptedPods": {name: at}}}
    world.api.update("poddisruptionbudgets.policy", updated, world.now, subresource="status")
    world.run(1)
    assert status(world)["disruptionsAllowed"] == 0
    world.delete("pods", f"default/{name}")
    world.run(2)
    assert status(world)["disruptionsAllowed"] == 1
    assert "disruptedPods" not in status(world)
