"""The agreement of a simulated run with a real one."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.emulation.agreement import agreement_of, matched_jobs, write_job_comparison
from batkube.kernel.errors import InputError
from batkube.outputs.results import Results

HEADER = "job_id,workload_name,submission_time,starting_time,finish_time,allocated_resources"


def run_of(folder: Path, name: str, starts: Sequence[float], *, first: int = 0) -> Results:
    """Return a run whose jobs are submitted at 0, start as given and take 10 s."""
    path = folder / f"{name}_jobs.csv"
    rows = [f"{number},w0,0,{start},{start + 10},0" for number, start in enumerate(starts, first)]
    path.write_text("\n".join([HEADER, *rows, ""]))
    return Results(path)


def test_a_run_agrees_with_itself(tmp_path: Path) -> None:
    run = run_of(tmp_path, "a", [0, 5, 9, 20])

    agreement = agreement_of(run, run)

    assert (agreement.makespan_error, agreement.wait_error, agreement.start_order) == (0, 0, 1)
    assert (agreement.kth_start_s_max, agreement.start_s_max) == (0, 0)


def test_jobs_that_swap_their_starts_do_not_change_the_whole_run(tmp_path: Path) -> None:
    agreement = agreement_of(run_of(tmp_path, "a", [0, 10, 20]), run_of(tmp_path, "b", [20, 10, 0]))

    assert (agreement.makespan_error, agreement.wait_error, agreement.kth_start_s_max) == (0, 0, 0)
    assert (agreement.start_order, agreement.start_s_max) == (-1, 20)


def test_errors_are_relative_and_signed(tmp_path: Path) -> None:
    agreement = agreement_of(run_of(tmp_path, "a", [10, 30]), run_of(tmp_path, "b", [10, 28]))

    assert agreement.makespan_error == pytest.approx(-0.05)
    assert agreement.wait_error == pytest.approx(-0.05)


def test_the_order_of_jobs_that_all_start_together_is_undefined(tmp_path: Path) -> None:
    agreement = agreement_of(run_of(tmp_path, "a", [0, 0]), run_of(tmp_path, "b", [0, 1]))

    assert (agreement.start_order, agreement.wait_error) == (None, 0.5)


def test_only_jobs_that_ran_in_both_count(tmp_path: Path) -> None:
    real, simulated = run_of(tmp_path, "a", [0, 5, 9]), run_of(tmp_path, "b", [5, 9, 30], first=1)

    assert list(matched_jobs(real, simulated).index) == [("w0", "1"), ("w0", "2")]
    with pytest.raises(InputError, match="has no job that also ran"):
        agreement_of(real, run_of(tmp_path, "c", [1], first=9))


@settings(max_examples=15)
@given(starts=st.lists(st.integers(0, 1000), min_size=2, max_size=20, unique=True), delay=st.integers(1, 50))
def test_a_constant_delay_does_not_change_the_order(
    tmp_path_factory: pytest.TempPathFactory, starts: list[int], delay: int
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    agreement = agreement_of(run_of(folder, "a", starts), run_of(folder, "b", [start + delay for start in starts]))

    assert agreement.start_order == pytest.approx(1)
    assert agreement.kth_start_s_mean == agreement.start_s_mean == pytest.approx(delay)


def test_jobs_are_written_side_by_side_in_order_of_their_real_starts(tmp_path: Path) -> None:
    both = matched_jobs(run_of(tmp_path, "a", [7, 3]), run_of(tmp_path, "b", [8, 1]))

    write_job_comparison(tmp_path / "compared.csv", both)

    with (tmp_path / "compared.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["job_id"], float(row["start_difference"])) for row in rows] == [("1", -2), ("0", 1)]
