"""Deadlines, grace periods and preStop hooks of pods."""

from __future__ import annotations

from typing import Any

import pytest
from tests.execution.pod_status import JOB_LIKE, status
from tests.simulated_cluster import Cluster


def test_a_deadline_may_be_set_and_lowered_while_a_pod_runs(world: Cluster) -> None:
    world.create("pods", world.pod("p"))
    world.run(5)
    world.change("pods", "default/p", activeDeadlineSeconds=60)
    world.run(20)
    assert status(world, "p")["phase"] == "Running"
    world.change("pods", "default/p", activeDeadlineSeconds=30)
    world.run(4)
    assert status(world, "p")["phase"] == "Running"
    world.run(2)
    assert (status(world, "p")["phase"], status(world, "p")["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_slow_pod_is_killed_after_its_grace_period(world: Cluster) -> None:
    for name, stop in (("slow", "10s"), ("endless", "1h")):
        world.create("pods", world.pod(name, {"batkube.io/stop-time": stop}))
    world.run(1)
    for name in ("slow", "endless"):
        world.delete("pods", f"default/{name}")
    world.run(5)
    assert len(world.pods()) == 2
    world.run(6)
    assert [pod["metadata"]["name"] for pod in world.pods()] == ["endless"]
    world.run(21)
    assert not world.pods()


@pytest.mark.parametrize(
    ("hook", "length_s", "noted"),
    [
        ({"sleep": {"seconds": 15}}, 15, ""),
        ({"exec": {"command": ["sleep", "15"]}}, 15, ""),
        ({"exec": {"command": ["/bin/sh", "-c", "nginx -s quit; sleep 15"]}}, 15, "/bin/sh -c nginx -s quit; sleep 15"),
        ({"exec": {"command": ["sh", "-c", "while true; do sleep 1; done"]}}, 30, ""),
        ({"exec": {"command": ["nginx", "-s", "quit"]}}, 0, "nginx -s quit"),
        ({"httpGet": {"port": 80}}, 0, "httpGet"),
    ],
)
def test_a_pod_stops_after_its_pre_stop_hook(world: Cluster, hook: dict[str, Any], length_s: int, noted: str) -> None:
    pod = world.pod("a")
    pod["spec"]["containers"][0]["lifecycle"] = {"preStop": hook}
    world.create("pods", pod)
    world.run(1)
    world.delete("pods", "default/a")
    if length_s:
        world.run(length_s - 1)
        assert world.pods()
    world.run(2)
    assert not world.pods()
    notes = [row["example"] for row in world.world.notes.rows()]
    assert notes == ([f"pod default/a, container app: {noted}"] if noted else [])


def test_a_pod_past_its_deadline_fails(world: Cluster) -> None:
    world.create("pods", world.pod("a", activeDeadlineSeconds=10, **JOB_LIKE) | {})
    pod = world.pod("b", {"batkube.io/duration": "1h"}, activeDeadlineSeconds=10, **JOB_LIKE)
    world.create("pods", pod)
    world.run(15)
    assert (status(world, "b")["phase"], status(world, "b")["reason"]) == ("Failed", "DeadlineExceeded")
