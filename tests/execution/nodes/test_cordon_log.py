"""Cordons by clients of the API are in the journal, and so in everything that is read from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batkube.kernel.instants import Instant
from batkube.outputs.measures.occupancy.absences import Absence, absences_of
from batkube.outputs.playback.playback import Playback
from conftest import Simulate

#: Cordons and uncordons node-0 through the API, changes a label of it, and marks it again as it is.
CLIENT = """
import time
from kubernetes import client, config

config.load_kube_config()
core = client.CoreV1Api()
for at, patch in (
    (10, {"spec": {"unschedulable": True}}),
    (15, {"metadata": {"labels": {"seen": "yes"}}}),
    (25, {"spec": {"unschedulable": True}}),
    (40, {"spec": {"unschedulable": None}}),
):
    time.sleep(max(0, 946684800 + at - time.time()))
    core.patch_node("node-0", patch)
while True:
    time.sleep(3600)
"""


def test_each_cordon_is_recorded_once_whoever_makes_it(simulate: Simulate, kube_scheduler: str, tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    program = tmp_path / "client.py"
    program.write_text(CLIENT)
    jobs = [{"id": str(number), "subtime": at, "res": 1, "profile": "d"} for number, at in enumerate((0, 5, 30))]

    run = simulate(
        jobs,
        {"d": {"type": "delay", "delay": 30}},
        platform="2x1",
        scheduler=kube_scheduler,
        attach=f"python:{program}",
        events=[{"at": 20, "cordon": "node-1"}, {"at": 30, "uncordon": "node-1"}],
        out=tmp_path / "out",
    )

    lines = [json.loads(line) for line in (run.path / "journal.jsonl").read_text().splitlines()]
    changes = [(line["t"] / 1e9, line["event"], line["nodes"]) for line in lines if "cordon" in line["event"]]
    assert [(round(at, 3), *change) for at, *change in changes] == [
        (10, "cordon", "node-0"),
        (20, "cordon", "node-1"),
        (30, "uncordon", "node-1"),
        (40, "uncordon", "node-0"),
    ]
    state = Playback.read(run.path).state_at(Instant(25 * 10**9))
    assert {name: str(node.status) for name, node in state.nodes.items()} == {
        "node-0": "cordoned",
        "node-1": "cordoned",
    }
    assert Absence(0, *(at for at, _, node in changes if node == "node-0")) in absences_of(run)
