"""ConfigMaps and Secrets to which containers refer."""

from __future__ import annotations

from tests.execution.pod_status import JOB_LIKE, status
from tests.simulated_cluster import Cluster


def test_an_ignored_post_start_hook_is_noted(world: Cluster) -> None:
    pod = world.pod("a")
    pod["spec"]["containers"][0]["lifecycle"] = {"postStart": {"exec": {"command": ["sleep", "15"]}}}
    world.create("pods", pod)
    world.run(1)
    (note,) = world.world.notes.rows()
    assert "postStart hook" in str(note["message"])


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
