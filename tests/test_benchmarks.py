"""The soak of benchmarks/ runs; its results are in benchmarks/results."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from batkube.kernel.errors import RunFailed
from clients.kubectl import build_kubectl

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def test_a_soak_of_some_seconds_samples_a_served_cluster_without_errors(tmp_path: Path) -> None:
    try:
        build_kubectl()
    except RunFailed as error:
        pytest.skip(f"needs kubectl: {error}")
    out = tmp_path / "samples.csv"
    command = [sys.executable, str(BENCHMARKS / "soak.py"), "serve", "--out", str(out), "--minutes", "0.2"]
    command += ["--interval", "6", "--rate", "10", "--watches", "2", "2", "1", "--platform", "4x8,32Gi"]

    subprocess.run([*command, "--node", "node-3"], check=True, capture_output=True, timeout=120)

    with out.open(encoding="utf-8") as file:
        samples = list(csv.DictReader(file))
    assert len(samples) == 2
    for sample in samples:
        assert int(sample["create count"]) > 0
        assert float(sample["create p50 ms"]) <= float(sample["create p99 ms"]) <= float(sample["create max ms"])
        assert float(sample["servers MB"]) > 30
        assert sample["other"] == ""
    assert int(samples[-1]["pods"]) > 20
