"""The simulation against runs of a real control plane 1.34.4 that were recorded: 16 nodes of one cpu, in real time.

What KWOK takes to start and to end pods is measured in the run with short pods; the runs with long ones, which are ten
times as long, are then foretold.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import batkube
from batkube.emulation.agreement import Agreement, agreement_of
from batkube.outputs.results import Results
from batkube.schedulers.builds import build_path
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.programs import program

SCHEDULER = "kube-scheduler@1.34.4"
CALIBRATION, SHORT_S = "burst17-rep3-quiet", 17


@pytest.fixture(scope="module")
def scheduler() -> str:
    """The path of kube-scheduler on the virtual clock, if it is built already: the tests of runs do that."""
    path = build_path(program(SCHEDULER), cache_folder())
    if not path.exists():
        pytest.skip(f"needs the real scheduler: batkube schedulers build {SCHEDULER}")
    return str(path)


def recorded(shared_data: Path, name: str, folder: Path) -> Results:
    """Return a recorded run, its columns named and its jobs numbered as ours."""
    rows = pd.read_csv(shared_data / "control-plane" / f"{name}.csv")
    rows["job_id"] += 1
    rows["waiting_time"] = rows["starting_time"] - rows["submission_time"]
    rows["workload_name"], rows["allocated_resources"] = "w0", ""
    path = folder / f"{name}_jobs.csv"
    rows.to_csv(path, index=False)
    return Results(path)


@pytest.fixture
def latencies(shared_data: Path, tmp_path: Path) -> Path:
    """What starting and ending pods took in the calibration run, as quantiles."""
    rows = pd.read_csv(shared_data / "control-plane" / f"{CALIBRATION}.csv")
    steps = {
        "start": rows["starting_time"] - rows["bound_time"],
        "report": rows["finish_time"] - rows["starting_time"] - SHORT_S,
    }
    path = tmp_path / "latencies.yaml"
    lines = []
    for name, times in steps.items():
        values = np.quantile(times.clip(lower=0), np.linspace(0, 1, 21))
        lines.append(f"{name}: empirical:{','.join(f'{value:.4f}' for value in values)}\n")
    path.write_text("".join(lines))
    return path


@pytest.mark.headline
@pytest.mark.parametrize(
    ("name", "workload"), [("burst170", "200_delay170.json"), ("spaced170", "spaced_200_delay170.json")]
)
def test_a_recorded_run_is_foretold_within_one_percent_and_its_mean_wait_within_three(
    shared_data: Path, tmp_path: Path, scheduler: str, latencies: Path, name: str, workload: str
) -> None:
    real = recorded(shared_data, name, tmp_path)

    simulated = batkube.run(
        workload=shared_data / "batkube" / "workloads" / workload,
        platform="16x1,4Gi",
        scheduler=scheduler,
        latencies=latencies,
        out=tmp_path / "out",
    )

    agreement = agreement_of(real, simulated)
    assert agreement.jobs == 200
    assert abs(agreement.makespan_error) < 0.01
    assert abs(agreement.wait_error) < 0.03
    _print(name, agreement)


def _print(name: str, agreement: Agreement) -> None:
    """Show the numbers that the chapter on trust quotes (pytest -s)."""
    print(f"\n{name}: {agreement}, errors {agreement.makespan_error:+.4f} {agreement.wait_error:+.4f}")
