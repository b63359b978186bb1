"""Comparisons of runs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from batkube.cli.commands.compare import print_comparison
from batkube.outputs.gantt.model import _subtitle
from batkube.outputs.measures.comparisons.run_comparison import Comparison, compare_runs
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun, SharedMachines


def row(comparison: Comparison, name: str) -> int:
    return next(number for number, row in enumerate(comparison.rows[0]) if row.name == name)


def test_a_metric_is_compared_with_that_of_the_baseline(make_run: MakeRun) -> None:
    first = make_run([("1", 0, 10, 20, "0")], name="first")
    second = make_run([("1", 0, 15, 25, "0")], name="second")

    comparison = compare_runs([first, second])
    reverse = compare_runs([first, second], baseline=1)

    assert comparison.labels == ["first", "second"]
    assert comparison.change(1, row(comparison, "mean wait")) == 0.5
    assert comparison.change(0, row(comparison, "mean wait")) is None
    assert reverse.change(0, row(reverse, "mean wait")) == pytest.approx(-1 / 3)
    assert comparison.warnings == []


def test_a_baseline_of_zero_has_no_relative_change(make_run: MakeRun) -> None:
    comparison = compare_runs([make_run([("1", 0, 0, 9, "0")]), make_run([("1", 0, 5, 9, "0")], name="b")])

    assert comparison.change(1, row(comparison, "mean wait")) is None
    assert comparison.change(1, row(comparison, "makespan")) == 0


def test_shifted_jobs_are_counted_and_the_largest_shift_is_named(make_run: MakeRun) -> None:
    first = make_run([("1", 0, 0, 1, "0"), ("2", 0, 1, 2, "0"), ("3", 0, 2, 3, "0")])
    failed = {"final_state": "COMPLETED_FAILED"}
    second = make_run([("3", 0, 0, 1, "1"), ("2", 0, 4, 5, "0", failed), ("1", 0, 0, 1, "0")], name="b")

    (difference,) = compare_runs([first, second]).differences

    assert (difference.common, difference.moved) == (3, 2)
    assert difference.moved_s_mean == 2.5
    assert (difference.moved_most, difference.moved_s_max) == ("2", 3)
    assert (difference.elsewhere, difference.ended_otherwise) == (1, 1)


@pytest.mark.parametrize(("starts", "order"), [((0, 1, 5), 1), ((9, 4, 0), -1), ((1, 1, 1), None)])
def test_the_order_of_starts_is_compared_by_rank_correlation(
    make_run: MakeRun, starts: tuple[int, int, int], order: float | None
) -> None:
    first = make_run([(str(number), 0, number, 10, "0") for number in range(3)])
    second = make_run([(str(number), 0, start, 10, "0") for number, start in enumerate(starts)], name="b")

    (difference,) = compare_runs([first, second]).differences

    assert difference.start_order == order


def test_different_jobs_or_submissions_cause_a_warning(make_run: MakeRun) -> None:
    first = make_run([("1", 0, 0, 1, "0"), ("2", 0, 1, 2, "0")], name="a")
    second = make_run([("1", 5, 5, 6, "0"), ("3", 0, 1, 2, "0")], name="b")

    warnings = compare_runs([first, second]).warnings

    assert warnings == [
        "b lacks 1 jobs of a and has 1 more",
        "b submits 1 of 1 jobs at other times than a, by up to 5 s",
    ]


def test_a_shifted_trace_causes_a_warning_and_its_instants_have_no_relative_change(
    make_run: MakeRun,
) -> None:
    start = 867110510
    shifted = make_run([("1", 1, 1, 11, "0"), ("2", 5, 5, 8, "1")], name="a")
    original = make_run([("1", start, start, start + 10, "0"), ("2", start + 4, start + 4, start + 7, "1")], name="b")

    comparison = compare_runs([shifted, original])

    assert comparison.warnings == ["b submits 2 of 2 jobs at other times than a, by up to 867,110,509 s"]
    changes = {row.column.name: comparison.change(1, number) for number, row in enumerate(comparison.rows[1])}
    assert changes["measured_from"] is None
    assert changes["measured_until"] is None
    assert changes["mean_turnaround_time"] == 0


def test_different_machine_counts_cause_a_warning_only_if_both_are_recorded(
    make_run: MakeRun, shared_machines: SharedMachines
) -> None:
    rows = [("1", 0, 0, 1, "0")]
    two = make_run(rows, name="two", manifest=shared_machines(1000, 2))
    three = make_run(rows, name="three", manifest=shared_machines(1000, 3))
    unknown = make_run(rows, name="unknown")

    assert compare_runs([two, three]).warnings == ["the runs have different numbers of machines: two 2, three 3"]
    assert compare_runs([two, unknown]).warnings == []


def test_jobs_of_several_workloads_are_matched_by_workload_and_id(make_run: MakeRun) -> None:
    rows = [("1", 0, 0, 1, "0"), ("1", 0, 1, 2, "0", {"workload_name": "w1"})]

    comparison = compare_runs([make_run(rows), make_run(rows[::-1], name="b")])

    assert comparison.warnings == []
    assert (comparison.differences[0].common, comparison.differences[0].moved) == (2, 0)


def test_a_published_run_is_equal_to_itself(shared_data: Path) -> None:
    run = Results(shared_data / "medium_late" / "easy")

    comparison = compare_runs([run, run])

    assert comparison.warnings == []
    assert comparison.differences[0].moved == 0
    assert all(comparison.change(1, number) in (0, None) for number in range(len(comparison.rows[0])))


def test_warnings_begin_with_failed_runs(make_run: MakeRun) -> None:
    completed = make_run([("1", 0, 0, 1, "0"), ("2", 0, 1, 2, "0")], name="completed", manifest={"result": "completed"})
    failed = make_run([("1", 0, 0, 1, "0")], name="failed", manifest={"result": "failed", "jobs": 2})
    unknown = make_run([("1", 0, 0, 1, "0")], name="unknown", manifest={"result": "failed"})
    out = io.StringIO()

    comparison = compare_runs([completed, failed, unknown])
    print_comparison(comparison, Console(file=out, width=200, highlight=False))

    assert comparison.warnings[:2] == [
        "failed failed: 1 of its 2 jobs have no outcome",
        "unknown failed: its results are incomplete",
    ]
    assert out.getvalue().startswith("warning: failed failed")
    assert "failed: 1 of its 2 jobs" in _subtitle(failed, failed.metrics, 0)
    assert "failed" not in _subtitle(completed, completed.metrics, 0)


def test_a_comparison_in_which_nothing_waited_or_schedulers_decide_alike_is_warned_about(make_run: MakeRun) -> None:
    def run(name: str, scheduler: str, wait: int) -> Results:
        rows = [(str(n), 100 * n, 100 * n + wait, 100 * n + wait + 5, "0") for n in range(40)]
        return make_run(rows, name=name, manifest={"batkube": "0", "scheduler": scheduler})

    idle = compare_runs([run("a", "policy:fcfs", 0), run("b", "policy:easy", 0)])
    busy = compare_runs([run("c", "policy:fcfs", 7), run("d", "policy:fcfs", 7)])

    assert any("no job waited in any of the runs" in warning for warning in idle.warnings)
    assert "b has the same schedule as a, although their schedulers differ" in idle.warnings
    assert busy.warnings == []
