"""Probes follow rules or the commands they execute; all others succeed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.execution.pod_status import conditions, status
from tests.simulated_cluster import Cluster

from batkube.execution.latencies.delays import Delays, Latencies
from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.streams import Streams
from batkube.workloads.container_rules.rules import ContainerRule

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


def test_a_failed_readiness_probe_does_not_restart_the_container(world: Cluster) -> None:
    probed(world, readinessProbe=execute("/bin/false"))
    world.run(300)
    assert (container(world)["ready"], container(world)["restartCount"]) == (False, 0)
    assert set(world.events("Unhealthy")) == {"Readiness probe failed: "}


def test_readiness_follows_the_existence_of_a_file(world: Cluster) -> None:
    script = "sleep 26; touch /tmp/health; sleep 60; rm /tmp/health; sleep 1h"
    probed(world, script, readinessProbe=execute(*HEALTH, initialDelaySeconds=5, successThreshold=2))
    states = []
    world.run(5)
    for _ in range(15):
        states.append(container(world)["ready"])
        world.run(10)
    # Checks at 10 s, 20 s, …: the first success is at 30 s and the second at 40 s; at 90 s failures begin, three count.
    assert states == [False] * 4 + [True] * 7 + [False] * 4


def test_a_failed_liveness_probe_restarts_the_container_with_fresh_files(world: Cluster) -> None:
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
    world.run(14)
    assert world.get("pods", "default/a")["status"]["phase"] == "Running"
    world.run(3)
    assert world.get("pods", "default/a")["status"]["phase"] == "Failed", "after 5, 10 and 15 seconds"
    assert "Container app failed liveness probe" in world.events("Killing")


def test_other_probes_wait_for_the_startup_probe(world: Cluster) -> None:
    script = "sleep 40; touch /tmp/up; sleep 1h"
    probed(
        world,
        script,
        startupProbe=execute("cat", "/tmp/up", failureThreshold=30),
        livenessProbe=execute("test", "-f", "/tmp/up", failureThreshold=1),
    )
    world.run(38)
    assert (container(world)["started"], container(world)["ready"]) == (False, False)
    world.run(3)
    assert (container(world)["started"], container(world)["ready"]) == (True, True)
    world.run(300)
    assert container(world)["restartCount"] == 0


def test_a_failed_startup_probe_restarts_the_container(world: Cluster) -> None:
    probed(world, startupProbe=execute("false", failureThreshold=2, periodSeconds=20))
    world.run(39)
    assert container(world)["restartCount"] == 0
    world.run(2)
    assert container(world)["restartCount"] == 1
    assert "Container app failed startup probe, will be restarted" in world.events("Killing")


@pytest.mark.parametrize(
    ("startup", "readiness", "ready_s"),
    [
        (None, {"initialDelaySeconds": 5}, 10),
        (None, {"initialDelaySeconds": 20}, 20),
        (None, {"initialDelaySeconds": 5, "periodSeconds": 3, "successThreshold": 3}, 12),
        ({}, {}, 10),
        ({"initialDelaySeconds": 7, "periodSeconds": 4}, {"initialDelaySeconds": 5}, 8),
        ({"initialDelaySeconds": 7, "periodSeconds": 4}, {"initialDelaySeconds": 15}, 18),
    ],
)
def test_network_probes_succeed_at_their_first_check(
    world: Cluster, startup: dict[str, int] | None, readiness: dict[str, int], ready_s: int
) -> None:
    """No process listens in a simulated container."""
    http = {"httpGet": {"port": 80}}
    startups = {} if startup is None else {"startupProbe": {**http, **startup}}
    probed(world, **startups, readinessProbe={**http, **readiness}, livenessProbe=http)
    world.run(ready_s - 0.5)
    assert not container(world)["ready"]
    world.run(1)
    assert container(world)["ready"]
    assert not world.world.notes.rows()


def test_without_a_readiness_probe_a_container_is_ready_after_its_startup_probe(world: Cluster) -> None:
    probed(world, startupProbe={"tcpSocket": {"port": 80}, "initialDelaySeconds": 20})
    world.run(29)
    assert (container(world)["started"], container(world)["ready"]) == (False, False), "20 s are missed by a moment"
    world.run(2)
    assert (container(world)["started"], container(world)["ready"]) == (True, True)


def test_a_probe_that_exceeds_its_timeout_fails(world: Cluster) -> None:
    probed(world, readinessProbe=execute("sleep", "3", timeoutSeconds=2))
    world.run(60)
    assert not container(world)["ready"]


def test_an_unsupported_probe_command_succeeds_with_a_note(world: Cluster) -> None:
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
def test_files_of_an_unknown_program_are_assumed_to_exist(
    world: Cluster, volume: dict[str, Any], path: str, command: list[str] | None
) -> None:
    """Otherwise containers of such programs would be restarted forever."""
    pod = world.pod("a", volumes=[{"name": "v", **volume}])
    mounts = [{"name": "v", "mountPath": "/data"}]
    pod["spec"]["containers"][0] |= {"livenessProbe": execute("cat", path, failureThreshold=1), "volumeMounts": mounts}
    if command:
        pod["spec"]["containers"][0]["command"] = command
    world.create("pods", pod)
    world.run(100)
    assert (container(world)["ready"], container(world)["restartCount"]) == (True, 0)
    assert f"pod default/a, container app: cat {path}" in [row["example"] for row in world.world.notes.rows()]


def test_files_that_another_container_may_have_created_are_assumed_to_exist(world: Cluster) -> None:
    pod = world.pod("a", volumes=[{"name": "v", "emptyDir": {}}])
    mounts = [{"name": "v", "mountPath": "/data"}]
    probe = execute("cat", "/data/ready", failureThreshold=1)
    app = {**pod["spec"]["containers"][0], "command": ["sleep", "1h"], "volumeMounts": mounts, "livenessProbe": probe}
    pod["spec"]["containers"] = [app, {"name": "helper", "image": "helper", "volumeMounts": mounts}]
    world.create("pods", pod)
    world.run(100)
    assert [one["restartCount"] for one in world.get("pods", "default/a")["status"]["containerStatuses"]] == [0, 0]


def test_a_probe_command_that_uses_no_files_can_fail(world: Cluster) -> None:
    pod = world.pod("a")
    pod["spec"]["containers"][0] |= {"command": ["/server"], "readinessProbe": execute("false")}
    world.create("pods", pod)
    world.run(60)
    assert not container(world)["ready"]


def ruled(make_world: type[Cluster], after: Distribution | None = None, until: Distribution | None = None) -> Cluster:
    rule = ContainerRule("rules.yaml: [0]", image="app", healthy_after=after, healthy_until=until)
    return make_world("1x4,16Gi", rules=[rule])


def test_a_rule_sets_when_a_container_is_ready(make_world: type[Cluster]) -> None:
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


def test_a_rule_sets_when_a_container_is_no_longer_alive(make_world: type[Cluster]) -> None:
    world = ruled(make_world, until=parse_distribution(3601))
    probed(world, "sleep 1d", livenessProbe=HTTP, readinessProbe={**HTTP, "failureThreshold": 1})
    world.run(3609)
    assert (container(world)["ready"], container(world)["restartCount"]) == (True, 0)
    world.run(10)
    assert (container(world)["ready"], container(world)["restartCount"]) == (False, 0), "probed after 3,610 seconds"
    world.run(12)
    assert (container(world)["ready"], container(world)["restartCount"]) == (True, 1), "it has failed three times"
    world.run(3640)
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
    impatient.run(29)
    assert container(impatient)["restartCount"] == 0
    impatient.run(2)
    assert container(impatient)["restartCount"] == 1


def test_a_rule_takes_precedence_over_a_probe_command(make_world: type[Cluster]) -> None:
    world = ruled(make_world, until=parse_distribution(100))
    probed(world, readinessProbe=execute("false"))
    world.run(5)
    assert container(world)["ready"]


def test_the_first_liveness_check_is_after_one_period(world: Cluster) -> None:
    probed(world, "sleep 2; touch /tmp/ok; sleep 1h", livenessProbe=execute("cat", "/tmp/ok", failureThreshold=1))
    world.run(300)
    assert (container(world)["ready"], container(world)["restartCount"]) == (True, 0)


def test_the_delay_of_readiness_is_counted_from_the_start_of_the_container(world: Cluster) -> None:
    up = execute("cat", "/tmp/up", failureThreshold=30)
    probed(
        world, "sleep 95; touch /tmp/up; sleep 1h", startupProbe=up, readinessProbe={**HTTP, "initialDelaySeconds": 60}
    )
    world.run(99)
    assert not container(world)["ready"]
    world.run(2)
    assert container(world)["ready"]


def test_a_probe_has_no_effect_before_its_initial_delay(world: Cluster) -> None:
    probed(world, startupProbe=execute("mkdir", "/tmp/once"))
    world.run(15)
    assert (container(world)["started"], container(world)["restartCount"]) == (True, 0)


def test_variables_of_the_container_are_put_into_the_command_of_a_probe(world: Cluster) -> None:
    probed(world, env=[{"name": "HOW", "value": "false"}], readinessProbe=execute("$(HOW)"))
    world.run(30)
    assert not container(world)["ready"]
    assert not world.world.notes.rows()


def test_a_container_stopped_by_a_probe_gets_its_grace_period(world: Cluster) -> None:
    slow = {"preStop": {"sleep": {"seconds": 20}}}
    probed(world, lifecycle=slow, livenessProbe=execute("false", failureThreshold=1))
    world.run(29)
    assert container(world)["restartCount"] == 0
    world.run(2)
    assert container(world)["restartCount"] == 1, "it was told to end after 10 s, and took 20"
    world.delete("pods", "default/a")
    world.run(40)
    assert not world.pods()


def test_a_stopped_container_no_longer_writes_to_volumes(world: Cluster) -> None:
    pod = world.pod("a", volumes=[{"name": "v", "emptyDir": {}}])
    mounts = [{"name": "v", "mountPath": "/data"}]
    script = "touch /data/ok; sleep 50; rm -f /data/ok; sleep 1h"
    pod["spec"]["containers"][0] |= {
        "command": ["sh", "-c", script],
        "volumeMounts": mounts,
        "livenessProbe": execute("false", failureThreshold=2),
    }
    other = {**world.pod("b")["spec"]["containers"][0], "name": "other", "command": ["sleep", "1h"]}
    pod["spec"]["containers"].append(other | {"volumeMounts": mounts, "readinessProbe": execute("cat", "/data/ok")})
    world.create("pods", pod)
    readies = []
    for _ in range(8):
        world.run(10)
        readies.append(world.get("pods", "default/a")["status"]["containerStatuses"][1]["ready"])
    assert all(readies), "every run is ended after 20 seconds"


@pytest.mark.parametrize("beside", [{"image": "envoy"}, {"command": ["sleep", "1d"], "restartPolicy": "Always"}])
def test_other_containers_do_not_write_a_containers_own_files(world: Cluster, beside: dict[str, Any]) -> None:
    pod = world.pod("a")
    script = "sleep 40; touch /tmp/up; sleep 1h"
    pod["spec"]["containers"][0] |= {"command": ["sh", "-c", script], "readinessProbe": execute("cat", "/tmp/up")}
    where = "initContainers" if "restartPolicy" in beside else "containers"
    pod["spec"].setdefault(where, []).append({"name": "beside", "image": "x", **beside})
    world.create("pods", pod)
    world.run(30)
    assert not world.get("pods", "default/a")["status"]["containerStatuses"][0]["ready"]
    world.run(15)
    assert world.get("pods", "default/a")["status"]["containerStatuses"][0]["ready"]


def test_a_sidecar_in_back_off_does_not_delay_other_containers(world: Cluster) -> None:
    pod = world.pod("a")
    sidecar = {"name": "side", "image": "x", "command": ["sleep", "1d"], "restartPolicy": "Always"}
    sidecar["livenessProbe"] = execute("false", failureThreshold=1, periodSeconds=1)
    pod["spec"]["initContainers"] = [sidecar, {"name": "first", "image": "x", "command": ["sleep", "6"]}]
    world.create("pods", pod)
    world.run(8)
    status = world.get("pods", "default/a")["status"]
    assert status["initContainerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert "running" in status["containerStatuses"][0]["state"]
    assert "Init container side failed liveness probe" in world.events("Killing")


def test_nothing_happens_to_a_pod_after_its_deadline(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi", delays=Delays(Latencies(report=parse_distribution(5)), Streams(0)))
    pod = world.pod("a", activeDeadlineSeconds=20)
    pod["spec"]["containers"][0] |= {
        "livenessProbe": execute("false"),
        "readinessProbe": {**HTTP, "initialDelaySeconds": 21},
    }
    world.create("pods", pod)
    world.run(60)
    status = world.get("pods", "default/a")["status"]
    assert status["phase"] == "Failed"
    assert "terminated" in status["containerStatuses"][0]["state"]
    assert not status["containerStatuses"][0]["ready"]


def test_a_readiness_probe_delays_readiness(world: Cluster) -> None:
    pod = world.pod("a")
    pod["spec"]["containers"][0]["readinessProbe"] = {"initialDelaySeconds": 10}
    world.create("pods", pod)
    world.run(5)
    assert conditions(world)["Ready"] == "False"
    assert status(world)["phase"] == "Running"
    world.run(6)
    assert conditions(world)["Ready"] == "True"
