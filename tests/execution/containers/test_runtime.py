"""Containers start, exit, restart and back off; errors delay their start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.execution.pod_status import JOB_LIKE, conditions, status, waiting
from tests.simulated_cluster import Cluster

from batkube.kernel.distributions import parse_distribution
from batkube.kernel.instants import instant_of, seconds
from batkube.workloads.container_rules.rules import ContainerRule
from batkube.workloads.container_rules.usage_curves import UsageCurve


def test_a_missing_image_is_pulled_with_back_off(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi", rules=[ContainerRule("rules.yaml: [0]", image="*:404", pull_fails=True)])
    pod = world.pod("lost")
    pod["spec"]["containers"][0]["image"] = "web:404"
    world.create("pods", pod)
    world.run(0.5)
    assert waiting(world, "lost")["reason"] == "ErrImagePull"
    world.run(2)
    assert waiting(world, "lost")["reason"] == "ImagePullBackOff"
    assert status(world, "lost")["phase"] == "Pending"
    assert status(world, "lost")["containerStatuses"][0]["ready"] is False
    world.run(30)
    pulls = [one for one in world.store.all("events").values() if one["reason"] == "Pulling"]
    assert sum(one.get("count", 1) for one in pulls) == 3, "at 0, 10 and 30 s"


@pytest.mark.parametrize(("value", "is_fine"), [("..", False), ("/tmp", False), ("good", True)])
def test_an_invalid_sub_path_keeps_a_container_waiting(world: Cluster, value: str, is_fine: bool) -> None:
    pod = world.pod("p", {"path": value}, volumes=[{"name": "v", "emptyDir": {}}])
    container = pod["spec"]["containers"][0]
    field = {"fieldRef": {"fieldPath": "metadata.annotations['path']"}}
    container["env"] = [{"name": "WHERE", "valueFrom": field}]
    container["volumeMounts"] = [{"name": "v", "mountPath": "/v", "subPathExpr": "$(WHERE)"}]
    world.create("pods", pod)
    world.run(1)
    assert status(world, "p")["phase"] == ("Running" if is_fine else "Pending")
    if not is_fine:
        assert waiting(world, "p")["reason"] == "CreateContainerConfigError"
        stuck = world.get("pods", "default/p")
        annotated = {**stuck["metadata"], "annotations": {"path": "better"}}
        world.api.update("pods", {**stuck, "metadata": annotated}, world.now)
        world.run(1)
        assert status(world, "p")["phase"] == "Running"


def test_an_ephemeral_container_runs_and_does_not_affect_the_pod(world: Cluster) -> None:
    world.create("pods", world.pod("p", {"batkube.io/duration": "60s"}, restart="Never"))
    world.run(5)
    added = [{"name": "brief", "image": "busybox", "command": ["sh", "-c", "sleep 3; exit 4"]}]
    world.change("pods", "default/p", ephemeralContainers=added)
    world.run(1)
    (one,) = status(world, "p")["ephemeralContainerStatuses"]
    assert "running" in one["state"]
    world.change("pods", "default/p", ephemeralContainers=[*added, {"name": "shell", "image": "busybox"}])
    world.run(5)
    first, second = status(world, "p")["ephemeralContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 4
    assert "running" in second["state"]
    world.run(60)
    assert status(world, "p")["phase"] == "Succeeded"


@pytest.mark.parametrize("restart", ["Always", "Never"])
def test_a_new_image_restarts_a_container_under_any_restart_policy(world: Cluster, restart: str) -> None:
    """The container restarts from the beginning; other containers of the pod are unaffected."""
    pod = world.pod("p", {"batkube.io/duration": "60s"}, restart=restart)
    (first,) = pod["spec"]["containers"]
    pod["spec"]["containers"] = [first, {**first, "name": "beside"}]
    world.create("pods", pod)
    world.run(40)
    changed = [{**first, "image": "app:2"}, {**first, "name": "beside"}]
    world.change("pods", "default/p", containers=changed)
    world.run(1)
    one, beside = status(world, "p")["containerStatuses"]
    assert (one["image"], one["restartCount"], beside["restartCount"]) == ("app:2", 1, 0)
    assert one["lastState"]["terminated"]["exitCode"] == 143
    assert world.events("Killing") == [f"Container {first['name']} definition changed, will be restarted"]
    world.run(25)
    one, beside = status(world, "p")["containerStatuses"]
    assert "running" in one["state"], "it runs for a minute from when it was started anew"
    assert ("terminated" in beside["state"]) == (restart == "Never")


def test_a_container_in_back_off_restarts_at_once_with_a_new_image(world: Cluster) -> None:
    world.create("pods", world.pod("p", {"batkube.io/duration": "1s", "batkube.io/exit-code": "1"}))
    world.run(5)
    assert waiting(world, "p")["reason"] == "CrashLoopBackOff"
    (container,) = world.get("pods", "default/p")["spec"]["containers"]
    world.change("pods", "default/p", containers=[{**container, "image": "app:2"}])
    world.run(0.5)
    assert status(world, "p")["containerStatuses"][0]["image"] == "app:2"
    assert "running" in status(world, "p")["containerStatuses"][0]["state"]


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


NEVER, ALWAYS = {"restartPolicy": "Never"}, {"restartPolicy": "Always"}


class TestPodsOfManyContainers:
    """The work for a pod is linear in the number of its containers, and is done in turns."""

    COUNT = 1_000

    @pytest.fixture
    def statuses(self, world: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """Return the statuses that are written from now on."""
        written: list[dict[str, Any]] = []
        update = world.api.update

        def record(storage: str, obj: dict[str, Any], *arguments: Any, **options: Any) -> dict[str, Any]:  # noqa: ANN401
            if storage == "pods" and options.get("subresource") == "status":
                written.append(obj["status"])
            return update(storage, obj, *arguments, **options)

        monkeypatch.setattr(world.api, "update", record)
        return written

    @staticmethod
    def pod(world: Cluster, commands: Iterator[list[str]], restart: str = "Never") -> dict[str, Any]:
        pod = world.pod("big", restart=restart)
        pod["spec"]["containers"] = [
            {"name": f"c{number}", "image": "busybox", "command": command} for number, command in enumerate(commands)
        ]
        return pod

    def test_containers_that_end_one_after_the_other_are_reported_at_intervals(
        self, world: Cluster, statuses: list[dict[str, Any]]
    ) -> None:
        world.create("pods", self.pod(world, (["sleep", f"{number / 10}"] for number in range(1, self.COUNT + 1))))
        world.run(60)
        during = [state for one in status(world, "big")["containerStatuses"] for state in one["state"]]
        world.run(60)

        assert during.count("terminated") in range(450, 601), "reports lag by at most ten seconds"
        assert status(world, "big")["phase"] == "Succeeded"
        assert all("terminated" in one["state"] for one in status(world, "big")["containerStatuses"])
        assert len(statuses) < 20
        (note,) = [row for row in world.world.notes.rows() if "reported at intervals" in row["message"]]
        assert note["example"] == "pod default/big"

    def test_containers_that_end_at_once_are_reported_together(
        self, world: Cluster, statuses: list[dict[str, Any]]
    ) -> None:
        world.create("pods", self.pod(world, (["sleep", "5"] for _ in range(self.COUNT))))
        world.run(5.5)

        assert status(world, "big")["phase"] == "Succeeded"
        assert len(statuses) < 10

    def test_containers_start_in_turns(self, world: Cluster, statuses: list[dict[str, Any]]) -> None:
        world.create("pods", self.pod(world, (["sleep", "60"] for _ in range(self.COUNT))))
        before = world.loop.executed
        world.run(1)

        assert world.loop.executed - before >= self.COUNT / 100
        assert all(one["started"] for one in status(world, "big")["containerStatuses"])
        assert sum(bool(each.get("containerStatuses")) for each in statuses) < 5

    def test_init_containers_run_one_after_the_other(self, world: Cluster, statuses: list[dict[str, Any]]) -> None:
        pod = self.pod(world, iter([["sleep", "1"]]))
        pod["spec"]["initContainers"] = [
            {"name": f"i{number}", "image": "busybox", "command": ["sleep", "0.01"]} for number in range(self.COUNT)
        ]
        world.create("pods", pod)
        world.run(12)

        assert status(world, "big")["phase"] == "Succeeded"
        assert len(statuses) < 10

    def test_few_events_are_recorded(self, world: Cluster) -> None:
        world.create("pods", self.pod(world, (["sleep", "5"] for _ in range(self.COUNT)), restart="Always"))
        world.run(60)

        kubelet = [one for one in world.store.all("events").values() if one["source"].get("component") == "kubelet"]
        assert len(kubelet) == 25
