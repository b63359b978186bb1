"""Two runs of one scenario are identical to the byte."""

from __future__ import annotations

import filecmp
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = {
    "fcfs": [],
    "easy": [],
    "conservative": [],
    "random": ["--seed", "5"],
    "priority": ["--latencies", "latencies.yaml", "--seed", "9"],
}


def write_inputs(folder: Path) -> None:
    jobs = [
        {
            "id": str(number),
            "subtime": (number * 37) % 400,
            "res": 1 + number % 5,
            "profile": f"p{number % 7}",
            "walltime": 80 + number % 90,
            "priority": number % 3,
            "user": f"u{number % 4}",
        }
        for number in range(120)
    ]
    profiles = {f"p{number}": {"type": "delay", "delay": 11 * number + 0.25} for number in range(7)}
    (folder / "workload.json").write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    (folder / "latencies.yaml").write_text("pull: lognormal:2,0.5\nstart: uniform:0,1\nreport: exponential:1\n")


def run_once(folder: Path, policy: str, out: str, hash_seed: str) -> Path:
    command = [sys.executable, "-m", "batkube", "run", "--workload", "workload.json", "--platform", "8x1"]
    command += ["--scheduler", f"policy:{policy}", *SCENARIO[policy], "--quiet", "--out", out]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
    return folder / out


@pytest.mark.parametrize("policy", SCENARIO)
def test_two_runs_under_different_hash_seeds_are_byte_identical(tmp_path: Path, policy: str) -> None:
    write_inputs(tmp_path)

    one, two = run_once(tmp_path, policy, "one", "1"), run_once(tmp_path, policy, "two", "2")

    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in two.iterdir())
    same, different, errors = filecmp.cmpfiles(one, two, names, shallow=False)
    assert (different, errors) == (["manifest.json"], [])
    assert len(same) == 7
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (one, two)]
    for manifest in manifests:
        del manifest["real"], manifest["command"], manifest["seal"]
    assert manifests[0] == manifests[1]


def test_another_seed_gives_another_random_schedule(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    one = run_once(tmp_path, "random", "one", "0")

    command = [sys.executable, "-m", "batkube", "run", "--workload", "workload.json", "--platform", "8x1"]
    command += ["--scheduler", "policy:random", "--seed", "6", "--quiet", "--out", "two"]
    subprocess.run(command, cwd=tmp_path, check=True)

    assert (one / "journal.jsonl").read_bytes() != (tmp_path / "two" / "journal.jsonl").read_bytes()
