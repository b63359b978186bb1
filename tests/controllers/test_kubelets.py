"""The lifecycle of a pod on a served node, as its status and events show it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.conftest import Cluster

from batkube.execution.containers.plans import plan_of
from batkube.execution.latencies.delays import Delays, Latencies
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.instants import instant_of, seconds
from batkube.kernel.streams import Streams
from batkube.workloads.container_rules.rules import ContainerBehaviour, ContainerRule
from batkube.workloads.container_rules.usage_curves import UsageCurve

JOB_LIKE = {"restart": "Never"}


def status(world: Cluster, name: str = "a") -> dict[str, Any]:
    found: dict[str, Any] = world.get("pods", f"default/{name}")["status"]
    return found


def conditions(world: Cluster, name: str = "a") -> dict[str, str]:
    return {one["type"]: one["status"] for one in status(world, name)["conditions"]}


def test_a_bound_pod_runs_and_has_an_address(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    found = status(world)
    assert found["phase"] == "Running"
    assert found["podIP"].startswith("10.")
    assert (
        found["hostIP"]
        == world.get("nodes", world.get("pods", "default/a")["spec"]["nodeName"])["status"]["addresses"][0]["address"]
    )
    assert set(conditions(world).values()) == {"True"}
    (container,) = found["containerStatuses"]
    assert container["ready"] is True
    assert "running" in container["state"]
    assert world.events("Started") == ["Started container app"]


def test_a_starting_pod_shows_container_creating(world: Cluster) -> None:
    seen = []
    world.store.subscribe("pods", lambda batch, now: seen.extend(pod["status"] for pod in batch.objects))
    world.create("pods", world.pod("a"))
    world.run(1)
    waiting = next(one for one in seen if one.get("containerStatuses"))
    assert waiting["phase"] == "Pending"
    assert waiting["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(("code", "phase", "reason"), [("0", "Succeeded", "Completed"), ("3", "Failed", "Error")])
def test_annotations_set_how_a_pod_ends(world: Cluster, code: str, phase: str, reason: str) -> None:
    world.create("pods", world.pod("a", {"batkube.io/duration": "30s", "batkube.io/exit-code": code}, **JOB_LIKE))
    world.run(29)
    assert status(world)["phase"] == "Running"
    world.run(2)
    assert status(world)["phase"] == phase
    terminated = status(world)["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (int(code), reason)
    assert conditions(world)["Ready"] == "False"


def test_a_finished_pod_frees_its_capacity(make_world: type[Cluster]) -> None:
    world = make_world("1x1,1Gi")
    world.create("pods", world.pod("a", {"batkube.io/duration": "30s"}, **JOB_LIKE))
    world.create("pods", world.pod("b", {"batkube.io/duration": "30s"}, **JOB_LIKE))
    world.run(20)
    assert status(world, "b")["phase"] == "Pending"
    world.run(20)
    assert status(world, "b")["phase"] == "Running"


def test_a_full_node_rejects_a_bound_pod(make_world: type[Cluster]) -> None:
    world = make_world("1x2,1Gi")
    world.create("pods", world.pod("a", cpu="3", nodeName="node-0"))
    world.run(1)
    found = status(world)
    assert (found["phase"], found["reason"]) == ("Failed", "OutOfcpu")
    reason = "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000"
    assert found["message"] == f"Pod was rejected: {reason}"
    assert world.events("OutOfcpu") == [reason]


def test_a_failing_container_backs_off_exponentially(world: Cluster) -> None:
    world.create("pods", world.pod("a", {"batkube.io/duration": "1s", "batkube.io/exit-code": "1"}))
    world.run(3)
    container = status(world)["containerStatuses"][0]
    assert container["restartCount"] == 1
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container["state"]["waiting"]["message"].startswith(
        "back-off 10s restarting failed container=app pod=a_default"
    )
    assert container["lastState"]["terminated"]["exitCode"] == 1
    assert status(world)["phase"] == "Running"
    assert conditions(world)["Ready"] == "False"
    world.run(11)
    assert status(world)["containerStatuses"][0]["restartCount"] == 2
    world.run(15)
    assert status(world)["containerStatuses"][0]["restartCount"] == 2
    world.run(10)
    assert status(world)["containerStatuses"][0]["restartCount"] == 3


def test_on_failure_restarts_only_failed_containers(world: Cluster) -> None:
    world.create("pods", world.pod("a", {"batkube.io/duration": "1s"}, restart="OnFailure"))
    world.run(5)
    assert status(world)["phase"] == "Succeeded"
    assert status(world)["containerStatuses"][0]["restartCount"] == 0


def test_init_containers_run_in_order_before_the_others(world: Cluster) -> None:
    pod = world.pod("a")
    pod["spec"]["initContainers"] = [
        {"name": "first", "image": "x", "command": ["sleep", "5"]},
        {"name": "second", "image": "x", "command": ["sh", "-c", "sleep 5"]},
    ]
    world.create("pods", pod)
    world.run(3)
    found = status(world)
    assert found["phase"] == "Pending"
    assert "running" in found["initContainerStatuses"][0]["state"]
    assert found["initContainerStatuses"][1]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert found["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions(world)["Initialized"] == "False"
    world.run(9)
    assert status(world)["phase"] == "Running"
    assert conditions(world)["Initialized"] == "True"


def test_an_init_container_that_fails_fails_a_pod_that_never_restarts(world: Cluster) -> None:
    pod = world.pod("a", **JOB_LIKE)
    pod["spec"]["initContainers"] = [{"name": "first", "image": "x", "command": ["false"]}]
    world.create("pods", pod)
    world.run(2)
    assert status(world)["phase"] == "Failed"


def test_a_sidecar_does_not_keep_the_pod_from_completing(world: Cluster) -> None:
    pod = world.pod("a", {"batkube.io/duration": "5s"}, **JOB_LIKE)
    pod["spec"]["initContainers"] = [{"name": "side", "image": "x", "restartPolicy": "Always"}]
    world.create("pods", pod)
    world.run(2)
    assert "running" in status(world)["initContainerStatuses"][0]["state"]
    assert status(world)["phase"] == "Running"
    world.run(5)
    assert status(world)["phase"] == "Succeeded"


def test_a_readiness_probe_delays_readiness(world: Cluster) -> None:
    pod = world.pod("a")
    pod["spec"]["containers"][0]["readinessProbe"] = {"initialDelaySeconds": 10}
    world.create("pods", pod)
    world.run(5)
    assert conditions(world)["Ready"] == "False"
    assert status(world)["phase"] == "Running"
    world.run(6)
    assert conditions(world)["Ready"] == "True"


def test_a_deleted_pod_is_stopped_and_removed(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    world.delete("pods", "default/a")
    world.run(0.1)
    assert not world.pods()
    assert world.events("Killing") == ["Stopping container app"]


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


def test_an_ignored_post_start_hook_is_noted(world: Cluster) -> None:
    pod = world.pod("a")
    pod["spec"]["containers"][0]["lifecycle"] = {"postStart": {"exec": {"command": ["sleep", "15"]}}}
    world.create("pods", pod)
    world.run(1)
    (note,) = world.world.notes.rows()
    assert "postStart hook" in str(note["message"])


def test_a_pod_past_its_deadline_fails(world: Cluster) -> None:
    world.create("pods", world.pod("a", activeDeadlineSeconds=10, **JOB_LIKE) | {})
    pod = world.pod("b", {"batkube.io/duration": "1h"}, activeDeadlineSeconds=10, **JOB_LIKE)
    world.create("pods", pod)
    world.run(15)
    assert (status(world, "b")["phase"], status(world, "b")["reason"]) == ("Failed", "DeadlineExceeded")


def test_addresses_are_reused(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    address = status(world)["podIP"]
    world.delete("pods", "default/a")
    world.run(1)
    world.create("pods", world.pod("a"))
    world.run(1)
    assert status(world)["podIP"] == address


def test_delays_take_effect_and_an_image_is_pulled_once_per_node(make_world: type[Cluster]) -> None:
    latencies = Latencies(pull=parse_distribution("constant:5"), report=parse_distribution("constant:2"))
    world = make_world("1x4,16Gi", delays=Delays(latencies, Streams(0)))
    world.create("pods", world.pod("a", {"batkube.io/duration": "10s"}, **JOB_LIKE))
    world.run(4)
    assert status(world)["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    world.run(2)
    assert status(world)["phase"] == "Running"
    world.create("pods", world.pod("b"))
    world.run(0.1)
    assert status(world, "b")["phase"] == "Running"
    world.run(10)
    assert status(world)["phase"] == "Running"
    world.run(2)
    assert status(world)["phase"] == "Succeeded"


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


def test_every_run_of_a_container_draws_a_new_duration(make_world: type[Cluster]) -> None:
    rule = ContainerRule("", image="app", duration=parse_distribution("uniform:1,100"), exit_code=parse_distribution(1))
    world = make_world("1x4,16Gi", rules=[rule])
    world.create("pods", world.pod("a", restart="OnFailure"))
    lengths = set()
    for _ in range(100):
        world.run(10)
        ended = status(world)["containerStatuses"][0]["lastState"].get("terminated")
        if ended:
            lengths.add(instant_of(ended["finishedAt"]) - instant_of(ended["startedAt"]))
    assert len(lengths) > 3


def test_a_container_that_exceeds_its_memory_limit_is_killed(make_world: type[Cluster]) -> None:
    leak = UsageCurve(((seconds(0), 0), (seconds(100), 100 << 20)))
    world = make_world("1x4,16Gi", rules=[ContainerRule("", image="app", memory=leak)])
    pod = world.pod("a", **JOB_LIKE)
    pod["spec"]["containers"][0]["resources"]["limits"] = {"memory": "50Mi"}
    world.create("pods", pod)
    world.create("pods", world.pod("b"))
    world.run(49)
    assert status(world)["phase"] == "Succeeded", "one that ends before is not killed: it runs for 10 s"
    world.create("pods", {**pod, "metadata": {"name": "c", "namespace": "default"}, "spec": {**pod["spec"], **ALWAYS}})
    world.run(49)
    assert "running" in status(world, "c")["containerStatuses"][0]["state"]
    world.run(2)
    ended = status(world, "c")["containerStatuses"][0]["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    assert status(world, "b")["containerStatuses"][0]["restartCount"] == 0, "it has no limit"


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


def test_a_container_of_unknown_behaviour_is_noted_and_has_a_warning(world: Cluster) -> None:
    for name in "abc":
        world.create("pods", world.pod(name, **JOB_LIKE))
    world.run(20)

    (note,) = world.world.notes.rows()
    assert "nothing says how long containers of image app run: they ended after 10s" in str(note["message"])
    assert (note["count"], note["example"]) == (3, "pod default/a, container app")
    assert (
        world.events("UnknownRunTime")
        == ["Nothing says how long container app runs, so it is simulated to end after 10s"] * 3
    )


@pytest.mark.parametrize(
    ("script", "restart", "doubt", "event"),
    [
        (
            "python train.py",
            "Never",
            "program `python` is unknown",
            "Nothing says how long container app runs, so it is simulated",
        ),
        (
            "wget http://x; sleep 5",
            "Never",
            "program `wget` is unknown",
            "The script of container app is not fully",
        ),
        ("serve | tee log", "Always", "`|`", "The script of container app is not fully supported: "),
    ],
    ids=["not understood", "in part", "until it is stopped"],
)
def test_a_script_that_is_not_understood_is_noted_with_its_image_and_has_a_warning(
    world: Cluster, script: str, restart: str, doubt: str, event: str
) -> None:
    pod = world.pod("a", restart=restart)
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", script]
    world.create("pods", pod)
    world.run(60)

    (note,) = world.world.notes.rows()
    assert "a script of image app is not fully supported" in str(note["message"])
    assert str(note["example"]).startswith("pod default/a, container app: ")
    assert doubt in str(note["example"])
    assert world.events("UnknownRunTime")[0].startswith(event)


@pytest.mark.parametrize(
    ("annotations", "restart"), [({"batkube.io/duration": "5s"}, "Never"), ({}, "Always")], ids=["described", "endless"]
)
def test_no_guess_is_noted_for_a_described_or_endless_container(
    world: Cluster, annotations: dict[str, str], restart: str
) -> None:
    world.create("pods", world.pod("a", annotations, restart=restart))
    world.run(3600)

    assert status(world)["phase"] == ("Running" if restart == "Always" else "Succeeded")
    assert not world.world.notes.rows()
    assert not world.events("UnknownRunTime")


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


def test_scripts_see_values_from_config_maps_and_secrets(world: Cluster) -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    world.create("configmaps", {**config_map, "data": {"LONG": "20"}})
    world.create("secrets", {**secret, "data": {"code": "Nw=="}})  # 7
    pod = world.pod("a", **JOB_LIKE)
    pod["spec"]["containers"][0] |= {
        "command": ["sh", "-c", "sleep $MY_LONG; exit $CODE"],
        "envFrom": [{"configMapRef": {"name": "m"}, "prefix": "MY_"}],
        "env": [{"name": "CODE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "code"}}}],
    }
    world.create("pods", pod)
    world.run(19)
    assert status(world)["phase"] == "Running"
    world.run(2)
    assert status(world)["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert not world.world.notes.rows()


def test_a_missing_config_map_or_secret_is_noted(world: Cluster) -> None:
    pod = world.pod("a", volumes=[{"name": "v", "secret": {"secretName": "lost"}}])
    optional = {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "may-be", "key": "k", "optional": True}}}
    pod["spec"]["containers"][0]["env"] = [optional]
    world.create("pods", pod)
    world.run(1)
    (note,) = world.world.notes.rows()
    assert note["example"] == "pod default/a, container app: secret lost"
