"""nodes.csv has every node, with its resources, its place, and when it existed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import yaml
from tests.outputs.writers.test_mean_utilisation import trace_file

import batkube
from batkube.outputs.results import Results


def node(name: str, labels: dict[str, str], **amounts: str) -> dict[str, object]:
    capacity = {"cpu": "3900m", "pods": "20", **amounts}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": capacity}}


def a_run(folder: Path, platform: Path | str, **options: object) -> Results:
    workload = trace_file(folder, [{"at": 0, "length": 1000}])
    return batkube.run(workload=workload, platform=platform, out=folder / "out", **options)  # type: ignore[arg-type]


def test_a_row_has_the_resources_of_a_node_and_its_place_by_labels(tmp_path: Path) -> None:
    platform = tmp_path / "nodes.yaml"
    gpu = {"nvidia.com/gpu": "2", "example.com/fpga": "1"}
    nodes = [
        node("a", {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/rack": "r7", "pool": 'big, "red"'}),
        node("b", {"eks.amazonaws.com/nodegroup": "g", "pool": "other"}, memory="4Gi", **gpu),
    ]
    platform.write_text(yaml.safe_dump_all(nodes))

    rows = a_run(tmp_path, platform).beside("nodes.csv").read_text().splitlines()

    assert rows[0] == "node,machine,cpu,memory,pods,gpus,other,zone,rack,pool,created,removed"
    assert rows[1:] == [
        'a,0,3.900,,20,,,z1,r7,"big, ""red""",0.000000,',
        'b,1,3.900,4294967296,20,2,"{""example.com/fpga"": 1}",,,g,0.000000,',
    ]


def test_a_node_that_is_removed_and_joins_again_has_a_row_for_each_period(tmp_path: Path) -> None:
    events = [{"at": 100, "remove": "node-1", "for": 50}, {"at": 200, "add": "1x8", "names": "late"}]

    nodes = a_run(tmp_path, "2x4", events=events).nodes

    times = [(row.node, row.created, row.removed) for row in nodes.itertuples()]
    assert [(name, created) for name, created, _ in times] == [
        ("node-0", 0), ("node-1", 0), ("node-1", 150), ("late-0", 200),
    ]  # fmt: skip
    assert nodes["removed"].dropna().tolist() == [100]
    assert nodes["cpu"].tolist() == [4, 4, 4, 8]


def test_a_machine_that_never_joined_has_no_row(tmp_path: Path) -> None:
    nodes = a_run(tmp_path, "1x4", events=[{"at": 5000, "add": "1x8"}]).nodes

    assert nodes["node"].tolist() == ["node-0"]


def test_a_folder_of_an_earlier_version_has_no_nodes(tmp_path: Path) -> None:
    run = a_run(tmp_path, "1x4")
    run.beside("nodes.csv").unlink()

    assert list(Results(run.path).nodes["node"]) == []
    assert isinstance(run.nodes, pd.DataFrame)
