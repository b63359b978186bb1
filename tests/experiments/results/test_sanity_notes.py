"""Notes on experiments that compare nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import batkube
from batkube.experiments.results.sanity_notes import sanity_notes
from batkube.kernel.errors import InputError


def trace(folder: Path, run: int) -> Path:
    path = folder / "t.swf"
    rows = ((n, 1 + n % 3, run * (1 + n % 3)) for n in range(60))
    lines = [f"{n} {100 * n} 5 {time} {size} -1 -1 1 {9 * time} -1 1 1 1 -1 -1 -1 -1 -1\n" for n, size, time in rows]
    path.write_text("; MaxProcs: 4\n" + "".join(lines))
    return path


def run_study(folder: Path, run: int, **more: object) -> list[str]:
    content = {
        "base": {"workload": {"resample": str(trace(folder, run)), "window": "40jobs"}, "platform": "4x1"},
        "axes": {"scheduler": ["policy:fcfs", "policy:sjf"]},
        "seeds": 2,
        **more,
    }
    batkube.experiment(content, folder / "out", jobs=1)
    return sanity_notes(folder / "out")


def test_an_experiment_in_which_nothing_waits_is_noted_and_so_are_identical_schedulers(tmp_path: Path) -> None:
    assert run_study(tmp_path, 20) == [
        "no job ever waited in any of the 4 runs: raise the load, or there is little to compare",
        "scheduler: policy:fcfs and policy:sjf gave the same numbers in all 2 runs of each",
    ]
    page = (tmp_path / "out").joinpath("report.html")
    batkube.experiments.experiment.ExperimentResults(tmp_path / "out").report(page)

    assert "No job ever waited in any of the 4 runs" in page.read_text()


def test_an_experiment_with_different_schedulers_has_no_note(tmp_path: Path) -> None:
    assert run_study(tmp_path, 400) == []


@pytest.mark.parametrize("recipe", [{"window": "61jobs"}, {"window": "9d"}, {"blocks": "9d", "length": "10d"}])
def test_a_window_that_does_not_exist_is_refused_before_the_first_run(tmp_path: Path, recipe: dict[str, str]) -> None:
    base = {"workload": {"resample": str(trace(tmp_path, 20)), **recipe}, "platform": "4x1"}

    with pytest.raises(InputError, match=r"t\.swf"):
        run_study(tmp_path, 20, base=base)
    assert not (tmp_path / "out").exists()
