"""Fields of a Node manifest reach the programs that read the simulated node, or are noted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube.cluster.kinds import KindTable
from batkube.cluster.mapping import ResourceModel, node_of
from batkube.cluster.schemas import Schema, Shape
from batkube.emulation.client.connection import ClusterConnection
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START
from batkube.platforms.reader import read_platform
from clients.serving import served
from conftest import Simulate

RICH = """
apiVersion: v1
kind: Node
metadata:
  name: worker-0
  uid: 8f0c2a9e-0000-4000-8000-000000000001
  resourceVersion: "812"
  creationTimestamp: "2024-05-01T10:00:00Z"
  labels: {zone: a}
  annotations: {extender.example/cost: "7", node.alpha.kubernetes.io/ttl: "0"}
  finalizers: [example.org/keep]
spec:
  podCIDR: 10.244.3.0/24
  podCIDRs: [10.244.3.0/24]
  providerID: aws:///eu-west-1a/i-0123456789
  taints: [{key: soft, value: x, effect: PreferNoSchedule}]
status:
  addresses:
    - {type: InternalIP, address: 10.0.3.7}
    - {type: Hostname, address: worker-0.example}
  capacity: {cpu: "4", memory: 7927820Ki, ephemeral-storage: 20G, pods: "110", example.org/fpga: "2"}
  allocatable: {cpu: 3920m, memory: 7Gi, ephemeral-storage: "18e9", pods: "58", example.org/fpga: "1"}
  nodeInfo: {kernelVersion: 6.1.0, osImage: Some Linux, architecture: arm64, kubeletVersion: v1.33.1}
  images: [{names: ["registry.example/app:1"], sizeBytes: 1000}]
  volumesInUse: [some-volume]
  conditions:
    - {type: Ready, status: "True", reason: KubeletReady, lastHeartbeatTime: "2024-05-01T10:00:00Z"}
    - {type: DiskPressure, status: "True", reason: KubeletHasDiskPressure}
    - {type: KernelDeadlock, status: "False", reason: KernelHasNoDeadlock, message: fine}
"""
GIVEN = yaml.safe_load(RICH)
LEFT_OUT = ["metadata.finalizers", "status.volumesInUse", "status.conditions (DiskPressure is True)"]

#: A scheduler that prints the nodes and binds every pod to the first of them.
PRINTER = """
import json, os, time, urllib.request, yaml
server = yaml.safe_load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]["server"]

def ask(path, body=None):
    headers = {"Content-Type": "application/json"}
    data = body and json.dumps(body).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(server + path, data, headers)))

nodes = ask("/api/v1/nodes")["items"]
print(json.dumps(nodes), flush=True)
while True:
    for pod in ask("/api/v1/pods")["items"]:
        if "nodeName" not in pod["spec"]:
            name = pod["metadata"]["name"]
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": nodes[0]["metadata"]["name"]}}
            ask(f"/api/v1/namespaces/default/pods/{name}/binding", {"apiVersion": "v1", "kind": "Binding", **binding})
    time.sleep(1)
"""


@pytest.fixture
def platform(tmp_path: Path) -> str:
    path = tmp_path / "nodes.yaml"
    path.write_text(RICH)
    return str(path)


def check(node: dict[str, Any], *, is_served: bool) -> None:
    """Check that a node, as a program read it, has the fields of its manifest."""
    metadata, spec, status = node["metadata"], node["spec"], node["status"]
    assert metadata["annotations"].items() >= GIVEN["metadata"]["annotations"].items()
    assert metadata["labels"].items() >= GIVEN["metadata"]["labels"].items()
    assert spec.items() >= GIVEN["spec"].items()
    assert status["addresses"] == GIVEN["status"]["addresses"]
    assert status["images"] == GIVEN["status"]["images"]
    assert status["nodeInfo"].items() >= GIVEN["status"]["nodeInfo"].items()
    assert status["capacity"] == GIVEN["status"]["capacity"]
    assert status["allocatable"] == {**GIVEN["status"]["allocatable"], "ephemeral-storage": "18e9"}
    conditions = {one["type"]: (one["status"], one.get("message")) for one in status["conditions"]}
    assert conditions["Ready"][0] == "True"
    assert conditions["KernelDeadlock"] == ("False", "fine")
    assert ("DiskPressure" in conditions) == is_served
    assert conditions.get("DiskPressure", ("False", ""))[0] == "False"


def check_notes(path: Path) -> None:
    messages = [note["message"] for note in json.loads(path.read_text()) if note["subject"] == "platform"]
    assert [message.partition(": ")[2] for message in messages] == LEFT_OUT


def test_a_program_in_a_run_reads_the_node_as_in_its_manifest(
    simulate: Simulate, platform: str, tmp_path: Path
) -> None:
    (tmp_path / "printer.py").write_text(PRINTER)
    jobs = [{"id": "0", "subtime": 0, "res": 1, "cpu": "1", "profile": "a"}]
    profiles = {"a": {"type": "delay", "delay": 3}}
    run = simulate(
        jobs, profiles, platform=platform, scheduler=f"python:{tmp_path / 'printer.py'}", resources="requests"
    )

    (node,) = json.loads((run.path / "scheduler" / "log.txt").read_text().splitlines()[0])
    check(node, is_served=False)
    check_notes(run.path / "fidelity.json")


def test_a_client_of_a_served_cluster_reads_the_node_as_in_its_manifest(platform: str, tmp_path: Path) -> None:
    with served(tmp_path / "out", "--platform", platform, "--speed", "2") as cluster:
        node = ClusterConnection(cluster.kubeconfig).get("/api/v1/nodes/worker-0")
        check(node, is_served=True)
        assert node["metadata"]["annotations"]["batkube.io/speed"] == "2"
        assert node["status"]["nodeInfo"]["operatingSystem"] == "linux"
    check_notes(tmp_path / "out" / "fidelity.json")


def test_a_cordoned_node_takes_no_jobs(simulate: Simulate, tmp_path: Path) -> None:
    node = "kind: Node\nmetadata: {{name: {}}}\nspec: {{unschedulable: {}}}\nstatus: {{capacity: {{cpu: 1}}}}\n"
    path = tmp_path / "nodes.yaml"
    path.write_text("---\n".join([node.format("a", "true"), node.format("b", "false")]))
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "a"} for number in range(2)]
    run = simulate(jobs, {"a": {"type": "delay", "delay": 3}}, platform=str(path))

    assert list(run.pods["node"]) == ["b", "b"]
    assert sorted(run.jobs["finish_time"]) == [3, 6]


def sample(schema: Schema) -> Any:  # noqa: ANN401 - JSON
    """Return a value of a schema with every field set."""
    values: dict[Shape, Any] = {Shape.STRING: "a", Shape.INTEGER: 3, Shape.BOOLEAN: True, Shape.ANY: {"a": "b"}}
    values |= {Shape.QUANTITY: "3", Shape.TIME: "2024-05-01T10:00:00Z", Shape.MICRO_TIME: "2024-05-01T10:00:00.000000Z"}
    if schema.shape is Shape.STRUCT:
        return {name: sample(field.schema) for name, field in schema.fields.items()}
    if schema.items is not None:
        one = sample(schema.items)
        return [one] if schema.shape is Shape.LIST else {"cpu": one}
    return values[schema.shape]


def paths(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    """Yield every scalar of an object with its path; elements of lists have the path of the list."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from paths(one, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        for one in value:
            yield from paths(one, prefix)
    else:
        yield prefix, value


ASSIGNED = {
    *("metadata." + name for name in ("creationTimestamp", "generation", "resourceVersion", "selfLink", "uid")),
    *("status.conditions." + name for name in ("lastHeartbeatTime", "lastTransitionTime")),
}


def test_every_field_of_a_node_is_kept_or_noted(tmp_path: Path) -> None:
    """All fields of Kubernetes' schema of a Node, and some unknown ones."""
    manifest = sample(KindTable.builtin().definition_of("", "v1", "Node"))
    manifest |= {"apiVersion": "v1", "kind": "Node", "surplus": 1}
    manifest["spec"]["taints"][0]["effect"] = "PreferNoSchedule"
    manifest["spec"]["unschedulable"] = False
    manifest["status"]["nodeInfo"]["surplus"] = "1"
    path = tmp_path / "node.json"
    path.write_text(json.dumps(manifest))

    platform = read_platform(str(path))
    _, node = node_of(platform.machines[0], ResourceModel.REQUESTS, START)

    stored = set(paths(node))
    noted = [note.message.partition(": ")[2] for note, _ in platform.notes]
    for name, value in paths(manifest):
        is_noted = any(name == field or name.startswith(f"{field}.") for field in noted)
        is_assigned = name in ASSIGNED or name.startswith("metadata.managedFields.")
        assert ((name, value) in stored) != is_noted or is_assigned, name
    assert {"surplus", "status.nodeInfo.surplus", "metadata.finalizers", "spec.configSource"} <= set(noted)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("status: {capacity: {cpu: 1}, addresses: 10.0.0.1}", "status.addresses: '10.0.0.1' is not a list"),
        ("status: {capacity: {cpu: 1}, nodeInfo: {osImage: 7}}", "status.nodeInfo.osImage: 7 is not text"),
        ("spec: {unschedulable: 1}\nstatus: {capacity: {cpu: 1}}", "spec.unschedulable: 1 is not true or false"),
    ],
)
def test_a_field_of_the_wrong_type_is_an_error(section: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(f"kind: Node\nmetadata: {{name: a}}\n{section}\n")
    with pytest.raises(InputError) as caught:
        read_platform(str(path))
    assert problem in str(caught.value)
