"""Usage of ResourceQuotas."""

from __future__ import annotations

from tests.simulated_cluster import Cluster


def test_quota_usage_decreases_when_objects_are_deleted(world: Cluster) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "5"}},
    }
    world.create("pods", world.pod("short", {"batkube.io/duration": "10s"}, restart="Never"))
    world.create("pods", world.pod("long"))
    world.create("resourcequotas", quota)
    world.run(1)
    assert world.get("resourcequotas", "default/few")["status"] == {"hard": {"pods": "5"}, "used": {"pods": "2"}}
    world.run(15)
    assert world.get("resourcequotas", "default/few")["status"]["used"] == {"pods": "1"}
    world.delete("pods", "default/long")
    world.run(1)
    assert world.get("resourcequotas", "default/few")["status"]["used"] == {"pods": "0"}
