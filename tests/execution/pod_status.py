"""Parts of the status of a pod in the namespace `default`."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster

#: A pod whose containers are not restarted.
JOB_LIKE = {"restart": "Never"}


def status(world: Cluster, name: str = "a") -> dict[str, Any]:
    found: dict[str, Any] = world.get("pods", f"default/{name}")["status"]
    return found


def conditions(world: Cluster, name: str = "a") -> dict[str, str]:
    return {one["type"]: one["status"] for one in status(world, name)["conditions"]}


def waiting(world: Cluster, name: str) -> dict[str, Any]:
    return dict(status(world, name)["containerStatuses"][0]["state"]["waiting"])
