"""kubectl cordons, drains, taints, creates and deletes nodes, and their pods react."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.kubectl import Kubectl
from clients.serving import Served, served

EXTRA = """
apiVersion: v1
kind: Node
metadata: {name: extra, labels: {disk: ssd}}
status: {capacity: {cpu: "64", memory: 256Gi, pods: "250"}}
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A cluster of two nodes for this module only."""
    with served(tmp_path_factory.mktemp("machines") / "out", "--platform", "2x4,16Gi") as running:
        yield running


@pytest.fixture
def kubectl(machines: Served, kubectl_program: Path, tmp_path: Path, namespace: str) -> Iterator[Kubectl]:
    """A kubectl for this cluster; afterwards the pods are deleted and the nodes uncordoned."""
    everywhere = Kubectl(kubectl_program, machines.kubeconfig, tmp_path)
    everywhere("create", "namespace", namespace)
    yield everywhere.within(namespace)
    everywhere("delete", "namespace", namespace)
    everywhere("uncordon", "node-0", "node-1")


def deploy(kubectl: Kubectl, replicas: int) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", f"--replicas={replicas}")
    kubectl("rollout", "status", "deployment/web")


def nodes_of_pods(kubectl: Kubectl) -> list[str]:
    """Return the node of each pod; "" for a pending pod."""
    pods = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


def test_get_and_describe_show_the_state_of_nodes(kubectl: Kubectl) -> None:
    table = kubectl("get", "nodes", "-o", "wide")
    described = kubectl("describe", "node", "node-0")

    assert [line.split()[:3] for line in table.splitlines()[1:]] == [
        ["node-0", "Ready", "<none>"],
        ["node-1", "Ready", "<none>"],
    ]
    assert "KubeletReady" in described
    assert "memory:  16Gi" in described
    assert "Non-terminated Pods:          (0 in total)" in described


def test_pods_of_a_drained_node_are_recreated_on_other_nodes(kubectl: Kubectl) -> None:
    deploy(kubectl, 4)
    assert nodes_of_pods(kubectl) == ["node-0", "node-0", "node-1", "node-1"]

    output = kubectl("drain", "node-0", "--ignore-daemonsets").splitlines()

    assert output[0] == "node/node-0 cordoned"
    assert output[-1] == "node/node-0 drained"
    assert sorted(line.split()[0] for line in output[1:-1]) == sorted(
        ["evicting", "evicting", *(line.split()[0] for line in output if line.endswith(" evicted"))]
    )
    kubectl("rollout", "status", "deployment/web")
    assert nodes_of_pods(kubectl) == ["node-1"] * 4
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", "node-0")

    assert kubectl("uncordon", "node-0") == "node/node-0 uncordoned\n"
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl("rollout", "status", "deployment/web")
    assert "node-0" in nodes_of_pods(kubectl)


def test_a_drain_respects_disruption_budgets(kubectl: Kubectl) -> None:
    deploy(kubectl, 2)
    kubectl("create", "poddisruptionbudget", "careful", "--selector=app=web", "--min-available=2")

    output = kubectl.fails("drain", "node-0", "--timeout=1s")

    assert "Cannot evict pod as it would violate the pod's disruption budget." in output
    assert nodes_of_pods(kubectl) == ["node-0", "node-1"]


def test_a_cordoned_node_keeps_its_pods_and_gets_no_new_ones(kubectl: Kubectl) -> None:
    deploy(kubectl, 2)

    assert kubectl("cordon", "node-0", "node-1") == "node/node-0 cordoned\nnode/node-1 cordoned\n"
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.replicas}=3", "--timeout=10s")

    assert nodes_of_pods(kubectl) == ["", "node-0", "node-1"]
    assert "2 node(s) were unschedulable" in kubectl("get", "events", "--field-selector=reason=FailedScheduling")


def test_a_no_execute_taint_evicts_pods_that_do_not_tolerate_it(kubectl: Kubectl) -> None:
    deploy(kubectl, 2)

    assert kubectl("taint", "node", "node-0", "repair=now:NoExecute") == "node/node-0 tainted\n"
    kubectl("rollout", "status", "deployment/web")

    assert nodes_of_pods(kubectl) == ["node-1", "node-1"]
    assert "TaintManagerEviction" in kubectl("get", "events")
    assert kubectl("taint", "node", "node-0", "repair-") == "node/node-0 untainted\n"


def test_pending_pods_are_bound_to_a_new_matching_node(kubectl: Kubectl) -> None:
    overrides = {"spec": {"nodeSelector": {"disk": "ssd"}}}
    kubectl("run", "selective", "--image=nginx", "--overrides", json.dumps(overrides))
    assert nodes_of_pods(kubectl) == [""]

    assert kubectl("create", "-f", "-", stdin=EXTRA) == "node/extra created\n"
    kubectl("wait", "pod/selective", "--for=condition=Ready", "--timeout=10s")

    assert nodes_of_pods(kubectl) == ["extra"]
    assert kubectl("get", "node", "extra", "--no-headers").split()[:2] == ["extra", "Ready"]
    assert kubectl("delete", "node", "extra") == 'node "extra" deleted\n'
    kubectl("delete", "pod", "selective", "--force")


def test_a_node_label_selects_the_node_of_a_pod(kubectl: Kubectl) -> None:
    assert kubectl("label", "node", "node-1", "zone=b") == "node/node-1 labeled\n"

    kubectl("run", "selective", "--image=nginx", "--overrides", json.dumps({"spec": {"nodeSelector": {"zone": "b"}}}))
    kubectl("wait", "pod/selective", "--for=condition=Ready", "--timeout=10s")

    assert nodes_of_pods(kubectl) == ["node-1"]
    assert kubectl("get", "nodes", "-l", "zone=b", "-o", "name") == "node/node-1\n"
    assert kubectl("label", "node", "node-1", "zone-") == "node/node-1 unlabeled\n"
