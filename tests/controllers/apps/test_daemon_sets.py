"""DaemonSets: one pod per eligible node (Kubernetes: pkg/controller/daemon)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import Cluster


def daemon_set(world: Cluster, image: str = "agent:1", **pod_spec: Any) -> dict[str, Any]:  # noqa: ANN401
    template = world.template({"app": "agent"}, cpu="100m", **pod_spec)
    template["spec"]["containers"][0]["image"] = image
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": template,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        },
    }


def nodes_of_pods(world: Cluster) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in world.pods("Running"))


def taint(world: Cluster, node: str, *taints: dict[str, str]) -> None:
    world.change("nodes", node, taints=list(taints))


def test_every_node_gets_a_pod_including_later_nodes(world: Cluster) -> None:
    world.create("daemonsets.apps", daemon_set(world))
    world.run(1)
    assert nodes_of_pods(world) == ["node-0", "node-1", "node-2", "node-3"]

    world.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}, "spec": {}, "status": {}})
    world.run(1)

    assert nodes_of_pods(world) == ["late", "node-0", "node-1", "node-2", "node-3"]
    status = world.get("daemonsets.apps", "default/agent")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberAvailable"]) == (5, 5, 5)


def test_a_pod_has_affinity_to_its_node_and_tolerates_its_conditions(world: Cluster) -> None:
    world.create("daemonsets.apps", daemon_set(world))
    world.run(1)

    pod = world.pods()[0]

    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}]}
    assert {(one["key"].rpartition("/")[2], one["effect"]) for one in pod["spec"]["tolerations"]} == {
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    }


def test_pods_run_on_cordoned_nodes_but_not_on_tainted_or_unselected_ones(world: Cluster) -> None:
    world.change("nodes", "node-0", unschedulable=True)
    taint(world, "node-1", {"key": "gpu", "value": "yes", "effect": "NoSchedule"})
    world.create("daemonsets.apps", daemon_set(world))
    world.run(1)
    assert nodes_of_pods(world) == ["node-0", "node-2", "node-3"]

    world.delete("daemonsets.apps", "default/agent")
    world.run(60)
    world.create("daemonsets.apps", daemon_set(world, nodeSelector={"kubernetes.io/hostname": "node-2"}))
    world.run(1)

    assert nodes_of_pods(world) == ["node-2"]


def test_a_later_taint_evicts_the_pod_only_with_no_execute(world: Cluster) -> None:
    world.create("daemonsets.apps", daemon_set(world))
    world.run(1)

    taint(world, "node-1", {"key": "gpu", "effect": "NoSchedule"})
    taint(world, "node-2", {"key": "gpu", "effect": "NoExecute"})
    world.run(60)

    assert nodes_of_pods(world) == ["node-0", "node-1", "node-3"]
    assert world.get("daemonsets.apps", "default/agent")["status"]["numberMisscheduled"] == 1


def test_a_deleted_pod_is_recreated_for_the_same_node(world: Cluster) -> None:
    world.create("daemonsets.apps", daemon_set(world))
    world.run(1)
    victim = world.pods()[0]

    world.delete("pods", f"default/{victim['metadata']['name']}")
    world.run(60)

    assert nodes_of_pods(world) == ["node-0", "node-1", "node-2", "node-3"]
    assert victim["metadata"]["name"] not in [pod["metadata"]["name"] for pod in world.pods()]


def test_a_revision_has_the_bytes_by_which_clients_compare_templates(world: Cluster) -> None:
    """Go marshals the template through a map, whose keys are sorted (pkg/controller/daemon/update.go, Match)."""
    world.create("daemonsets.apps", daemon_set(world))
    world.run(1)
    template = world.get("daemonsets.apps", "default/agent")["spec"]["template"]
    (revision,) = world.store.all("controllerrevisions.apps").values()

    expected = json.dumps({"spec": {"template": {**template, "$patch": "replace"}}}, sort_keys=True)

    assert json.dumps(revision["data"]) == expected
