"""Platforms from Node manifests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS
from batkube.platforms.manifests import CORDONED, TAINTED, dropped_field_note
from batkube.platforms.model import DEFAULT_PODS, Platform
from batkube.platforms.reader import read_platform

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{zone: a}}
spec: {spec}
status:
  capacity: {{cpu: "4", memory: 8Gi, pods: "110"}}
  allocatable: {{cpu: 3900m, memory: 7Gi, pods: "100", nvidia.com/gpu: 2}}
"""


def read(folder: Path, text: str, name: str = "nodes.yaml") -> Platform:
    path = folder / name
    path.write_text(text)
    return read_platform(str(path))


def node(name: str, spec: str = "{}") -> str:
    return NODE.format(name=name, spec=spec)


def test_allocatable_takes_precedence_over_capacity(tmp_path: Path) -> None:
    platform = read(tmp_path, node("a"))

    (machine,) = platform.machines
    assert machine.capacity == {CPU: 3900, MEMORY: 7 * 1024**3, PODS: 100, GPU: 2}
    assert machine.labels == {"zone": "a"}


def test_without_allocatable_the_capacity_is_used(tmp_path: Path) -> None:
    platform = read(tmp_path, "kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: 2}}")

    assert platform.machines[0].capacity == {CPU: 2000, PODS: DEFAULT_PODS}


def test_several_documents_and_lists_are_read_in_order(tmp_path: Path) -> None:
    items = [{"kind": "Node", "metadata": {"name": n}, "status": {"capacity": {"cpu": "1"}}} for n in ("b", "a")]
    text = f"---\n{node('z')}\n---\n---\n{json.dumps({'kind': 'List', 'items': items})}\n"

    platform = read(tmp_path, text)

    assert [(machine.id, machine.name) for machine in platform.machines] == [(0, "z"), (1, "b"), (2, "a")]


def test_a_node_list_in_json_is_read(tmp_path: Path) -> None:
    items = [{"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1500m"}}}]

    platform = read(tmp_path, json.dumps({"kind": "NodeList", "items": items}), "nodes.json")

    assert platform.machines[0].cpu_milli == 1500


def test_taints_are_kept(tmp_path: Path) -> None:
    platform = read(tmp_path, node("a", "{taints: [{key: dedicated, value: gpu, effect: NoSchedule, timeAdded: x}]}"))

    assert platform.machines[0].taints == ({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},)
    assert (dropped_field_note("spec.taints.timeAdded"), 1) in platform.notes


def test_a_cordoned_node_is_kept_and_counted_in_a_note(tmp_path: Path) -> None:
    platform = read(
        tmp_path,
        f"{node('a', '{unschedulable: true}')}---{node('b')}---{node('c', '{unschedulable: true}')}---{node('d')}",
    )

    assert [machine.name for machine in platform.machines if machine.takes_any_pod] == ["b", "d"]
    assert [machine.name for machine in platform.machines if machine.is_cordoned] == ["a", "c"]
    assert platform.notes == ((CORDONED, 2),)


def test_a_platform_with_only_cordoned_nodes_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="every node is cordoned") as error:
        read(tmp_path, node("a", "{unschedulable: true}"))

    assert "uncordon" in (error.value.remedy or "")


@pytest.mark.parametrize(
    ("effect", "notes"),
    [("NoSchedule", ((TAINTED, 2),)), ("NoExecute", ((TAINTED, 2),)), ("PreferNoSchedule", ())],
)
def test_a_node_with_repelling_taints_is_kept_and_counted_in_a_note(tmp_path: Path, effect: str, notes: object) -> None:
    spec = f"{{taints: [{{key: k, effect: {effect}}}, {{key: l, effect: {effect}}}]}}"

    platform = read(tmp_path, f"{node('a', spec)}---{node('b')}---{node('c', spec)}")

    assert len(platform.machines) == 3
    assert platform.notes == notes


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("kind: Pod\nmetadata: {name: a}", "document 1", "a Pod, not a Node"),
        ("- 1\n- 2", "document 1", "not a Kubernetes object"),
        ("", None, "no machine"),
        ("kind: List\nitems: []", None, "no machine"),
        ("kind: List\nitems: 5", "items", "not a list"),
        ("kind: Node\nmetadata: {}", "metadata.name", "no name"),
        ("kind: Node\nmetadata: 3", "metadata", "not a mapping"),
        ("kind: Node\nmetadata: {name: a}", "status", "contains no cpu"),
        ("kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: x}}", "capacity.cpu", "not a quantity"),
        ("kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: [1]}}", "capacity.cpu", "not a quantity"),
        ("kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: -1}}", "capacity.cpu", "negative"),
        ("kind: Node\nmetadata: {name: a, labels: {gpu: true}}\nstatus: {capacity: {cpu: 1}}", "label gpu", "not text"),
        (
            "kind: Node\nmetadata: {name: a}\nspec: {taints: [{key: k}]}\nstatus: {capacity: {cpu: 1}}",
            "taints",
            "taint",
        ),
        (f"{node('a')}---{node('a')}", "'a'", "two machines"),
        ("kind: Node\nmetadata: {name: [}", "line 2", "not YAML"),
        ("kind: 2020-13-45", None, "not YAML"),
    ],
)
def test_errors_name_the_place_in_the_manifest(tmp_path: Path, text: str, at: str | None, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        read(tmp_path, text)

    assert at is None or at in (error.value.at or "")
    assert error.value.remedy


def test_an_error_in_json_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not JSON") as error:
        read(tmp_path, '{"kind": "Node",\n oops}', "nodes.json")

    assert error.value.at == "line 2"
