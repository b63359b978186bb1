"""Aggregated roles are updated when a selected role changes."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster

from batkube.controllers.role_aggregation import CLUSTER_ROLE


def rule(resource: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": ["get"]}


def role(name: str, *resources: str, aggregates: str = "", **labels: str) -> dict[str, Any]:
    manifest = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": [rule(resource) for resource in resources],
    }
    if aggregates:
        manifest["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {aggregates: "yes"}}]}
    return manifest


def resources_of(world: Cluster, name: str) -> list[str]:
    return [resource for one in world.get(CLUSTER_ROLE, name)["rules"] for resource in one["resources"]]


def test_an_aggregated_role_contains_rules_ordered_by_role_without_duplicates(world: Cluster) -> None:
    world.create(CLUSTER_ROLE, role("all", aggregates="part"))
    world.create(CLUSTER_ROLE, role("b", "pods", "nodes", part="yes"))
    world.create(CLUSTER_ROLE, role("a", "services", "pods", part="yes"))
    world.create(CLUSTER_ROLE, role("c", "secrets", part="no"))
    world.run(1)

    assert resources_of(world, "all") == ["services", "pods", "nodes"]


def test_aggregation_is_transitive(world: Cluster) -> None:
    world.create(CLUSTER_ROLE, role("edit", aggregates="edits"))
    world.create(CLUSTER_ROLE, role("view", aggregates="views", edits="yes"))
    world.create(CLUSTER_ROLE, role("pods", "pods", views="yes"))
    world.run(1)
    assert resources_of(world, "edit") == ["pods"]

    world.delete(CLUSTER_ROLE, "pods")
    world.run(1)

    assert resources_of(world, "edit") == []
