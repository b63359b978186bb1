"""Dynamic resource allocation: devices that pods claim, chosen by the real kube-scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import batkube

OBJECTS = Path(__file__).resolve().parents[2] / "examples" / "devices" / "objects.yaml"
OUTPUTS = ("jobs.csv", "pods.csv", "devices.csv", "journal.jsonl", "fidelity.json")
#: A reaction of a controller, or two.
SOON_S = 0.01


def scheduled(kube_scheduler: str, out: Path) -> batkube.Run:
    return batkube.run(workload=OBJECTS, platform="3x16,128Gi", scheduler=kube_scheduler, out=out)


def notes(run: batkube.Run) -> str:
    return " ".join(note["message"] for note in json.loads((run.path / "fidelity.json").read_text()))


def test_pods_wait_for_devices_and_are_placed_on_their_nodes(tmp_path: Path, kube_scheduler: str) -> None:
    run = scheduled(kube_scheduler, tmp_path / "out")
    pods = {job: rows.sort_values("started") for job, rows in run.pods.groupby("job_id")}

    sweep, train, pair = pods["sweep"], pods["train"], pods["pair"]
    assert list(sweep["started"]) == pytest.approx([10] * 4 + [310] * 2, abs=SOON_S), "there are four cards"
    assert sorted(sweep["node"][:4]) == ["node-0", "node-0", "node-1", "node-1"]
    (begin,) = train["started"]
    large = sweep[sweep["node"] == "node-1"]
    assert begin == pytest.approx(large["finished"].max(), abs=SOON_S), "both large cards must be free"
    assert set(train["node"]) == {"node-1"}
    assert list(pair["started"]) == pytest.approx([1200, 1200], abs=SOON_S)
    assert set(pair["node"]) == {"node-0"}, "the only card that is free, and they share it"
    assert not notes(run), "all of it is as on a cluster"


def test_devices_csv_records_which_pods_held_each_device(tmp_path: Path, kube_scheduler: str) -> None:
    run = scheduled(kube_scheduler, tmp_path / "out")
    uses = run.devices
    held = run.pods.set_index("pod")

    assert len(uses) == 6 + 2 + 1, "the sweep's cards, two of the training, and a shared one"
    for use in uses.itertuples():
        pods = held.loc[str(use.pods).split()]
        assert use.allocated == pytest.approx(pods["started"].min(), abs=SOON_S)
        assert use.freed == pytest.approx(pods["finished"].max(), abs=SOON_S)
        assert set(pods["node"]) == {use.pool}
    shared = uses[uses["claim"] == "default/shared-card"]
    assert [len(pods.split()) for pods in shared["pods"]] == [2]
    for _, rows in uses.sort_values("allocated").groupby(["driver", "pool", "device"]):
        assert (rows["freed"].to_numpy()[:-1] <= rows["allocated"].to_numpy()[1:]).all(), "one claim at a time"


def test_two_runs_are_identical_to_the_byte(tmp_path: Path, kube_scheduler: str) -> None:
    runs = [scheduled(kube_scheduler, tmp_path / name) for name in ("one", "the other")]
    one, other = ([(run.path / name).read_bytes() for name in OUTPUTS] for run in runs)
    assert one == other


def test_device_claims_are_noted_under_a_policy(tmp_path: Path) -> None:
    run = batkube.run(workload=OBJECTS, platform="3x16,128Gi", scheduler="policy:fcfs", out=tmp_path / "out")
    assert "claims devices that are not allocated" in notes(run)
    assert not (run.path / "devices.csv").exists()
    assert run.devices.empty
