"""Probes go as rules say, or as the commands do that they execute; all others succeed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.conftest import Cluster

from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.workloads.rules import ContainerRule

HTTP = {"httpGet": {"port": 80}}
HEALTH = ["cat", "/tmp/health"]


def probed(world: Cluster, script: str = "sleep 1h", restart: str = "Always", **probes: Any) -> None:  # noqa: ANN401
    pod = world.pod("a", restart=restart)
    pod["spec"]["containers"][0] |= {"command": ["sh", "-c", script], **probes}
    world.create("pods", pod)


def execute(*command: str, **fields: int) -> dict[str, Any]:
    return {"exec": {"command": list(command)}, **fields}


def container(world: Cluster) -> dict[str, Any]:
    (status,) = world.get("pods", "default/a")["status"]["containerStatuses"]
    assert isinstance(status, dict)
    return status


def test_a_container_is_not_ready_if_its_probe_fails_and_is_not_restarted(world: Cluster) -> None:
    probed(world, readinessProbe=execute("/bin/false"))
    world.run(300)
    assert (container(world)["ready"], container(world)["restartCount"]) == (False, 0)
    assert set(world.events("Unhealthy")) == {"Readiness probe failed: "}


def test_readiness_comes_and_goes_with_a_file(world: Cluster) -> None:
    script = "sleep 26; touch /tmp/health; sleep 60; rm /tmp/health; sleep 1h"
    probed(world, script, readinessProbe=execute(*HEALTH, initialDelaySeconds=5, successThreshold=2))
    states = []
    world.run(5)
    for _ in range(15):
        states.append(container(world)["ready"])
        world.run(10)
    # Probed after 10 s, 20 s, …: seen at 30 s and believed at 40 s; missed at 90 s, and believed the third time.
    assert states == [False] * 4 + [True] * 7 + [False] * 4


def test_a_container_that_is_not_alive_is_restarted_with_its_image_as_it_was(world: Cluster) -> None:
    script = "touch /tmp/health; sleep 30; rm -f /tmp/health; sleep 600"
    probed(world, script, livenessProbe=execute(*HEALTH, initialDelaySeconds=15, failureThreshold=1))
    world.run(29)
    assert container(world)["restartCount"] == 0
    world.run(3)
    assert container(world)["restartCount"] == 1, "probed after 20 and 30 seconds"
    assert container(world)["lastState"]["terminated"]["exitCode"] == 143
    assert "Container app failed liveness probe, will be restarted" in world.events("Killing")
    world.run(20)
    assert container(world)["state"]["running"], "the file is there again"
    assert container(world)["ready"]


def test_a_pod_that_is_not_restarted_fails(world: Cluster) -> None:
    probed(world, restart="Never", livenessProbe=execute("false", periodSeconds=5))
    world.run(9)
    assert world.get("pods", "default/a")["status"]["phase"] == "Running"
    world.run(3)
    assert world.get("pods", "default/a")["status"]["phase"] == "Failed", "after 0, 5 and 10 seconds"
    assert "Container app failed liveness probe" in world.events("Killing")


def test_nothing_else_is_looked_at_before_a_container_has_started(world: Cluster) -> None:
    script = "sleep 40; touch /tmp/up; sleep 1h"
    probed(
        world,
        script,
        startupProbe=execute("cat", "/tmp/up", failureThreshold=30),
        livenessProbe=execute("test", "-f", "/tmp/up", failureThreshold=1),
    )
    world.run(38)
    assert (container(world)["started"], container(world)["ready"]) == (False, False)
    world.run(5)
    assert (container(world)["started"], container(world)["ready"]) == (True, True)
    world.run(300)
    assert container(world)["restartCount"] == 0


def test_a_container_that_does_not_start_in_time_is_restarted(world: Cluster) -> None:
    probed(world, startupProbe=execute("false", failureThreshold=2, periodSeconds=20))
    world.run(30)
    assert container(world)["restartCount"] == 1
    assert "Container app failed startup probe, will be restarted" in world.events("Killing")


@pytest.mark.parametrize(
    ("startup", "readiness", "ready_s"),
    [
        (None, {"initialDelaySeconds": 5}, 10),
        (None, {"initialDelaySeconds": 20}, 20),
        (None, {"initialDelaySeconds": 5, "periodSeconds": 3, "successThreshold": 3}, 12),
        ({"initialDelaySeconds": 7, "periodSeconds": 4}, {"initialDelaySeconds": 5}, 8),
        ({"initialDelaySeconds": 7, "periodSeconds": 4}, {"initialDelaySeconds": 15}, 18),
    ],
)
def test_probes_over_the_network_succeed_when_it_is_their_turn(
    world: Cluster, startup: dict[str, int] | None, readiness: dict[str, int], ready_s: int
) -> None:
    """Nobody listens in a simulated container."""
    http = {"httpGet": {"port": 80}}
    startups = {} if startup is None else {"startupProbe": {**http, **startup}}
    probed(world, **startups, readinessProbe={**http, **readiness}, livenessProbe=http)
    world.run(ready_s - 0.5)
    assert not container(world)["ready"]
    world.run(1)
    assert container(world)["ready"]
    assert not world.world.notes.rows()


def test_a_startup_probe_alone_says_when_a_container_is_ready(world: Cluster) -> None:
    probed(world, startupProbe={"tcpSocket": {"port": 80}, "initialDelaySeconds": 20})
    world.run(19)
    assert (container(world)["started"], container(world)["ready"]) == (False, False)
    world.run(2)
    assert (container(world)["started"], container(world)["ready"]) == (True, True)


def test_what_takes_longer_than_its_timeout_fails(world: Cluster) -> None:
    probed(world, readinessProbe=execute("sleep", "3", timeoutSeconds=2))
    world.run(60)
    assert not container(world)["ready"]


def test_a_command_that_is_not_understood_succeeds_and_is_noted(world: Cluster) -> None:
    probed(world, readinessProbe=execute("pg_isready", "-U", "me"))
    world.run(1)
    assert container(world)["ready"]
    assert [row["example"] for row in world.world.notes.rows()] == ["pod default/a, container app: pg_isready -U me"]


@pytest.mark.parametrize(
    ("volume", "path"),
    [
        ({"emptyDir": {}}, "/data/ready"),
        ({"hostPath": {"path": "/x"}}, "/data/ready"),
        ({"emptyDir": {}}, "/tmp/ready"),
    ],
)
@pytest.mark.parametrize("command", [["/server"], ["sh", "-c", "./server & sleep 1h"], None])
def test_files_of_a_program_that_nobody_knows_are_taken_to_be_there(
    world: Cluster, volume: dict[str, Any], path: str, command: list[str] | None
) -> None:
    """Else containers of such programs would be restarted for ever."""
    pod = world.pod("a", volumes=[{"name": "v", **volume}])
    mounts = [{"name": "v", "mountPath": "/data"}]
    pod["spec"]["containers"][0] |= {"livenessProbe": execute("cat", path, failureThreshold=1), "volumeMounts": mounts}
    if command:
        pod["spec"]["containers"][0]["command"] = command
    world.create("pods", pod)
    world.run(100)
    assert (container(world)["ready"], container(world)["restartCount"]) == (True, 0)
    assert f"pod default/a, container app: cat {path}" in [row["example"] for row in world.world.notes.rows()]


def test_files_that_another_container_may_have_made_are_taken_to_be_there(world: Cluster) -> None:
    pod = world.pod("a", volumes=[{"name": "v", "emptyDir": {}}])
    mounts = [{"name": "v", "mountPath": "/data"}]
    probe = execute("cat", "/data/ready", failureThreshold=1)
    app = {**pod["spec"]["containers"][0], "command": ["sleep", "1h"], "volumeMounts": mounts, "livenessProbe": probe}
    pod["spec"]["containers"] = [app, {"name": "helper", "image": "helper", "volumeMounts": mounts}]
    world.create("pods", pod)
    world.run(100)
    assert [one["restartCount"] for one in world.get("pods", "default/a")["status"]["containerStatuses"]] == [0, 0]


def test_a_command_without_files_fails_whatever_the_container_does(world: Cluster) -> None:
    pod = world.pod("a")
    pod["spec"]["containers"][0] |= {"command": ["/server"], "readinessProbe": execute("false")}
    world.create("pods", pod)
    world.run(60)
    assert not container(world)["ready"]


def ruled(make_world: type[Cluster], after: Distribution | None = None, until: Distribution | None = None) -> Cluster:
    rule = ContainerRule("rules.yaml: [0]", image="app", healthy_after=after, healthy_until=until)
    return make_world("1x4,16Gi", rules=[rule])


def test_a_rule_says_when_a_container_is_ready(make_world: type[Cluster]) -> None:
    world = ruled(make_world, after=parse_distribution(25))
    probed(world, readinessProbe=HTTP)
    world.run(29)
    assert not container(world)["ready"]
    world.run(2)
    assert container(world)["ready"], "probed after 0, 10, 20 and 30 seconds"
    assert world.events("Unhealthy") == ["Readiness probe failed: "]
    booked = len(world.world.agenda)
    world.run(100)
    assert len(world.world.agenda) == booked, "nothing would ever change"
    assert container(world)["ready"]


def test_a_rule_says_when_a_container_is_no_longer_alive(make_world: type[Cluster]) -> None:
    world = ruled(make_world, until=parse_distribution(3601))
    probed(world, "sleep 1d", livenessProbe=HTTP, readinessProbe={**HTTP, "failureThreshold": 1})
    world.run(3609)
    assert (container(world)["ready"], container(world)["restartCount"]) == (True, 0)
    world.run(10)
    assert (container(world)["ready"], container(world)["restartCount"]) == (False, 0), "probed after 3,610 seconds"
    world.run(12)
    assert (container(world)["ready"], container(world)["restartCount"]) == (True, 1), "it has failed three times"
    world.run(3629)
    assert container(world)["restartCount"] == 2, "every run begins well"


def test_a_container_that_is_slow_to_start_needs_a_startup_probe_that_waits(make_world: type[Cluster]) -> None:
    world = ruled(make_world, after=parse_distribution(45))
    probed(world, startupProbe={**HTTP, "failureThreshold": 6}, livenessProbe=HTTP)
    world.run(49)
    assert (container(world)["started"], container(world)["restartCount"]) == (False, 0)
    world.run(2)
    assert (container(world)["started"], container(world)["ready"]) == (True, True)

    impatient = ruled(make_world, after=parse_distribution(45))
    probed(impatient, livenessProbe=HTTP)
    impatient.run(21)
    assert container(impatient)["restartCount"] == 1


def test_a_rule_wins_over_the_command_of_a_probe(make_world: type[Cluster]) -> None:
    world = ruled(make_world, until=parse_distribution(100))
    probed(world, readinessProbe=execute("false"))
    world.run(5)
    assert container(world)["ready"]
