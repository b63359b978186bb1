"""Curves over time, against evalys and machine_states.csv."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import batkube
from batkube.outputs.over_time.chart_kinds import ChartKind
from batkube.outputs.over_time.curves import panels_of
from batkube.outputs.results import Results


def curve(
    results: Results, kind: ChartKind, panel: int = 0
) -> batkube.outputs.measures.occupancy.step_functions.StepFunction:
    return panels_of(kind, [results])[panel].curves[0].steps


@pytest.mark.filterwarnings("ignore")  # evalys' own, about pandas
def test_the_queue_equals_that_of_evalys(tmp_path: Path) -> None:
    jobset = pytest.importorskip("evalys.jobset")
    workload = {"generate": "lublin", "jobs": 150, "machines": 16}
    run = batkube.run(workload=workload, platform="16x1", seed=5, out=tmp_path / "run")
    queue = jobset.JobSet.from_csv(str(tmp_path / "run" / "jobs.csv"), resource_bounds=(0, 15)).queue

    requested = curve(Results(run.path), ChartKind.QUEUE, 1)

    times = queue.index.to_numpy(dtype=float)
    times_between = (times[:-1] + times[1:]) / 2
    assert len(times_between) > 100
    assert requested.at(times_between).tolist() == pytest.approx(queue["load"].to_numpy()[:-1].tolist())


def test_free_machines_are_neither_busy_nor_absent(runs: list[Results]) -> None:
    for results in runs:
        states = results.machine_states
        times = states["time"].to_numpy()
        times_between = (times[:-1] + times[1:]) / 2

        assert curve(results, ChartKind.FREE).at(times_between).tolist() == states["nb_idle"].tolist()[:-1]


def test_states_add_up_to_all_machines(runs: list[Results]) -> None:
    (panel,) = panels_of(ChartKind.STATES, runs[:1])

    labels = [one.label for one in panel.curves]
    assert labels == ["computing", "idle", "not available"]
    times = np.linspace(0, 20_000, 50)
    assert np.sum([one.steps.at(times) for one in panel.curves], axis=0).tolist() == [16] * 50
