"""A part of a grid is selected by labels, and its runs belong to the whole grid."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.experiments.conftest import Study

import batkube
from batkube.experiments.description.experiment_file import read_experiment
from batkube.experiments.plan.grid import points
from batkube.experiments.plan.grid_selection import parse_selection, select_points
from batkube.kernel.errors import InputError

GRID = {
    "base": {"workload": "w.json"},
    "axes": {"scheduler": ["policy:fcfs", "policy:sjf"], "platform": ["2x1", "3x1", "4x1"]},
    "seeds": 2,
    "repeats": 3,
    "exclude": [{"scheduler": "policy:sjf", "platform": "4x1"}],
}
CHOICES = {
    "scheduler": ["policy:fcfs", "policy:sjf"],
    "platform": ["2x1", "3x1", "4x1"],
    "seed": [0, 1],
    "repeat": [1, 2, 3],
}


@given(st.fixed_dictionaries({}, optional={k: st.lists(st.sampled_from(v), min_size=1) for k, v in CHOICES.items()}))
def test_a_selection_has_the_runs_with_its_labels_in_the_order_of_the_grid(part: dict[str, list[object]]) -> None:
    experiment = read_experiment(GRID)
    all_points = list(points(experiment))
    expected = [
        point
        for point in all_points
        for coordinates in [{**point.labels, "seed": point.seed, "repeat": point.repeat}]
        if all(coordinates[name] in labels for name, labels in part.items())
    ]

    if expected:
        assert select_points(all_points, part, experiment) == expected
    else:
        with pytest.raises(InputError, match="leaves no run"):
            select_points(all_points, part, experiment)


@pytest.mark.parametrize(("duration", "runs"), [("1s", 1), ("1000ms", 1), ("0.5s", 1), ("500ms,1s", 2), ("2s", 0)])
def test_a_duration_may_be_written_in_another_unit(duration: str, runs: int) -> None:
    axes = {"patience": {"from": "500ms", "to": "1500ms", "step": "500ms"}}
    experiment = read_experiment({"base": {"workload": "w.json", "platform": "1x1"}, "axes": axes})
    part = parse_selection([f"patience={duration}"])

    if runs:
        assert len(select_points(list(points(experiment)), part, experiment)) == runs
    else:
        with pytest.raises(InputError, match="is not a value of patience"):
            select_points(list(points(experiment)), part, experiment)


def test_selections_of_one_axis_add_up() -> None:
    assert parse_selection(["a=1,2", "b = x", "a=3"]) == {"a": ["1", "2", "3"], "b": ["x"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scheduler", "--only: 'scheduler' has no values"),
        ("scheduler=", "--only: 'scheduler=' has no values"),
        ("schedular=policy:fcfs", "--only: schedular: is not an axis, seed or repeat"),
        ("scheduler=policy:fcfz", "--only: scheduler.policy:fcfz: is not a value of scheduler"),
        ("repeat=4", "--only: repeat.4: is not a value of repeat"),
    ],
)
def test_labels_outside_the_grid_are_rejected(text: str, message: str) -> None:
    experiment = read_experiment(GRID)

    with pytest.raises(InputError) as error:
        select_points(list(points(experiment)), parse_selection([text]), experiment)

    assert message in str(error.value)


def test_the_whole_grid_reuses_the_runs_of_a_part(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    path = study.file(axes={"scheduler": ["policy:fcfs", "policy:sjf"]}, repeats=2)

    part = batkube.experiment(path, study.out, only={"repeat": [2]})
    assert list(part.results["repeat"]) == [2, 2]
    times_ns = {name: (study.out / "runs" / name).stat().st_mtime_ns for name in part.results["run"]}

    whole = batkube.experiment(path, study.out)
    assert list(whole.results["repeat"]) == [1, 2, 1, 2]
    assert (
        times_ns.items()
        <= {name: (study.out / "runs" / name).stat().st_mtime_ns for name in whole.results["run"]}.items()
    )
