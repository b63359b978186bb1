"""`import batkube` gives the same as the command line, as objects."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import batkube
from batkube.scenarios.keys import KEYS

if TYPE_CHECKING:
    from conftest import Simulate

PROFILES = {"d": {"type": "delay", "delay": 10}}
JOBS = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(6)]


def test_a_run_has_frames_and_a_picture(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES, platform="4x1")

    assert len(run.jobs) == len(run.pods) == 6
    assert run.schedule["makespan"] == 20
    assert list(run.machine_states["nb_computing"]) == [4, 2, 0]
    assert run.manifest["scheduler"] == "policy:fcfs"
    assert run.gantt().axes


def test_without_out_the_folder_lives_as_long_as_the_run(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES, out=None)
    folder = run.path
    assert (folder / "jobs.csv").is_file()

    del run
    gc.collect()

    assert not folder.exists()


def test_several_workloads_run_together_and_keep_their_names(simulate: Simulate, tmp_path: Path) -> None:
    simulate(JOBS, PROFILES)
    workload = tmp_path / "workload.json"

    run = batkube.run(workload=[workload, workload], platform="4x1", out=tmp_path / "both")

    assert list(run.jobs["workload_name"]) == ["w0"] * 6 + ["w1"] * 6
    assert run.schedule["makespan"] == 30


def test_bad_input_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(batkube.InputError, match=r"absent\.json"):
        batkube.run(workload=tmp_path / "absent.json", platform="4x1")


def test_what_is_exported_is_there() -> None:
    assert all(hasattr(batkube, name) for name in batkube.__all__)


def test_the_manifest_holds_the_scenario_as_a_scenario_file_would(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES, seed=4, scheduler="policy:sjf")

    scenario = run.manifest["scenario"]

    assert tuple(scenario) == KEYS
    assert (scenario["seed"], scenario["scheduler"]) == (4, "policy:sjf")
    assert len(run.manifest["inputs"][0]["sha256"]) == 64
