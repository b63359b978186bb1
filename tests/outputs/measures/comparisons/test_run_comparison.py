from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from batkube.cli.commands.compare import compare, print_comparison
from batkube.experiments.description.columns import number_columns
from batkube.kernel.errors import InputError
from batkube.outputs.gantt.model import _subtitle
from batkube.outputs.measures.comparisons.run_comparison import Comparison, compare_runs
from batkube.outputs.measures.comparisons.run_labels import labels_of
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from outputs.conftest import MakeRun, Packed


def row(comparison: Comparison, name: str) -> int:
    return next(number for number, row in enumerate(comparison.rows[0]) if row.name == name)


def test_a_metric_is_compared_with_the_baselines(make_run: MakeRun) -> None:
    first = make_run([("1", 0, 10, 20, "0")], name="first")
    second = make_run([("1", 0, 15, 25, "0")], name="second")

    comparison = compare_runs([first, second])
    reverse = compare_runs([first, second], baseline=1)

    assert comparison.labels == ["first", "second"]
    assert comparison.change(1, row(comparison, "mean wait")) == 0.5
    assert comparison.change(0, row(comparison, "mean wait")) is None
    assert reverse.change(0, row(reverse, "mean wait")) == pytest.approx(-1 / 3)
    assert comparison.warnings == []


def test_no_percentage_is_made_of_a_baseline_of_zero(make_run: MakeRun) -> None:
    comparison = compare_runs([make_run([("1", 0, 0, 9, "0")]), make_run([("1", 0, 5, 9, "0")], name="b")])

    assert comparison.change(1, row(comparison, "mean wait")) is None
    assert comparison.change(1, row(comparison, "makespan")) == 0


def test_jobs_that_moved_are_counted_and_the_farthest_is_named(make_run: MakeRun) -> None:
    first = make_run([("1", 0, 0, 1, "0"), ("2", 0, 1, 2, "0"), ("3", 0, 2, 3, "0")])
    failed = {"final_state": "COMPLETED_FAILED"}
    second = make_run([("3", 0, 0, 1, "1"), ("2", 0, 4, 5, "0", failed), ("1", 0, 0, 1, "0")], name="b")

    (difference,) = compare_runs([first, second]).differences

    assert (difference.common, difference.moved) == (3, 2)
    assert difference.moved_s_mean == 2.5
    assert (difference.moved_most, difference.moved_s_max) == ("2", 3)
    assert (difference.elsewhere, difference.ended_otherwise) == (1, 1)


@pytest.mark.parametrize(("starts", "order"), [((0, 1, 5), 1), ((9, 4, 0), -1), ((1, 1, 1), None)])
def test_the_order_of_starts_is_told_by_their_rank_correlation(
    make_run: MakeRun, starts: tuple[int, int, int], order: float | None
) -> None:
    first = make_run([(str(number), 0, number, 10, "0") for number in range(3)])
    second = make_run([(str(number), 0, start, 10, "0") for number, start in enumerate(starts)], name="b")

    (difference,) = compare_runs([first, second]).differences

    assert difference.start_order == order


def test_other_jobs_or_submissions_are_warned_of(make_run: MakeRun) -> None:
    first = make_run([("1", 0, 0, 1, "0"), ("2", 0, 1, 2, "0")], name="a")
    second = make_run([("1", 5, 5, 6, "0"), ("3", 0, 1, 2, "0")], name="b")

    warnings = compare_runs([first, second]).warnings

    assert warnings == [
        "b lacks 1 jobs of a and has 1 more",
        "b submits 1 of 1 jobs at other times than a, by up to 5 s",
    ]


def test_a_trace_that_one_run_has_shifted_is_told_in_plain_numbers_and_its_instants_have_no_percentage(
    make_run: MakeRun,
) -> None:
    start = 867110510
    shifted = make_run([("1", 1, 1, 11, "0"), ("2", 5, 5, 8, "1")], name="a")
    plain = make_run([("1", start, start, start + 10, "0"), ("2", start + 4, start + 4, start + 7, "1")], name="b")

    found = compare_runs([shifted, plain])

    assert found.warnings == ["b submits 2 of 2 jobs at other times than a, by up to 867,110,509 s"]
    changes = {row.column.name: found.change(1, number) for number, row in enumerate(found.rows[1])}
    assert changes["measured_from"] is None
    assert changes["measured_until"] is None
    assert changes["mean_turnaround_time"] == 0


def test_other_machines_are_warned_of_only_when_both_runs_state_them(make_run: MakeRun, packed: Packed) -> None:
    rows = [("1", 0, 0, 1, "0")]
    two = make_run(rows, name="two", manifest=packed(1000, 2))
    three = make_run(rows, name="three", manifest=packed(1000, 3))
    unknown = make_run(rows, name="unknown")

    assert compare_runs([two, three]).warnings == ["the runs have different numbers of machines: two 2, three 3"]
    assert compare_runs([two, unknown]).warnings == []


def test_jobs_of_several_workloads_are_told_apart_by_workload(make_run: MakeRun) -> None:
    rows = [("1", 0, 0, 1, "0"), ("1", 0, 1, 2, "0", {"workload_name": "w1"})]

    comparison = compare_runs([make_run(rows), make_run(rows[::-1], name="b")])

    assert comparison.warnings == []
    assert (comparison.differences[0].common, comparison.differences[0].moved) == (2, 0)


def test_a_published_run_compares_with_itself_as_equal(shared_data: Path) -> None:
    run = Results(shared_data / "medium_late" / "easy")

    comparison = compare_runs([run, run])

    assert comparison.warnings == []
    assert comparison.differences[0].moved == 0
    assert all(comparison.change(1, number) in (0, None) for number in range(len(comparison.rows[0])))


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["/x/easy", "/x/fcfs"], ["easy", "fcfs"]),
        (["/x/easy/out", "/x/fcfs/out"], ["easy", "fcfs"]),
        (["/x/a/one", "/x/b/one", "/x/b/two"], ["a/one", "b/one", "two"]),
        (["/x/burst_0_jobs.csv", "/x/burst_1_jobs.csv"], ["burst_0", "burst_1"]),
        (["/x/easy/jobs.csv", "/x/fcfs/jobs.csv"], ["easy", "fcfs"]),
        (["/x/a", "/x/a"], ["a", "a (2)"]),
        (["/x/a"], ["a"]),
    ],
)
def test_labels_are_the_shortest_names_that_differ(paths: list[str], labels: list[str]) -> None:
    assert labels_of([Path(path) for path in paths]) == labels


def test_the_table_has_no_control_codes_and_is_never_cut_when_piped(make_run: MakeRun) -> None:
    rows = [("1", 0, 10, 20, "0")]
    runs = [make_run(rows, name=f"a_rather_long_name_of_a_run_{number}") for number in range(6)]
    out = io.StringIO()

    print_comparison(compare_runs(runs), Console(file=out, width=80, highlight=False))

    text = out.getvalue()
    assert "\x1b" not in text
    assert "…" not in text
    assert all(f"a_rather_long_name_of_a_run_{number}" in text for number in range(6))
    lines = [line for line in text.splitlines() if "mean wait " in line]
    assert lines == [lines[0]]
    assert lines[0].split() == ["mean", "wait", "s", "10.00", *["10.00", "="] * 5]


def test_better_is_green_and_worse_is_red_on_a_terminal(make_run: MakeRun) -> None:
    out = io.StringIO()
    runs = [make_run([("1", 0, 10, 20, "0")], name="a"), make_run([("1", 0, 20, 30, "0")], name="b")]

    print_comparison(compare_runs(runs), Console(file=out, force_terminal=True, color_system="standard", width=200))

    assert "\x1b[31m+100.0\x1b[0m" in out.getvalue()


def test_the_csv_has_a_row_per_metric_and_a_column_per_run(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run([("1", 0, 10, 20, "0")], name="a"), make_run([("1", 0, 15, 25, "0")], name="b")]

    compare([run.path for run in runs], csv=tmp_path / "table.csv")

    with (tmp_path / "table.csv").open(newline="") as file:
        rows = {row["metric"]: row for row in csv.DictReader(file)}
    assert rows["mean_waiting_time"] == {"metric": "mean_waiting_time", "unit": "s", "a": "10.0", "b": "15.0"}
    assert rows["fairness_by_user"]["a"] == ""
    assert set(rows) - {"nb_completed_successfully"} <= {*number_columns()}
    assert "+50.0" in capsys.readouterr().out


def test_unusable_arguments_are_refused(make_run: MakeRun, tmp_path: Path) -> None:
    path = make_run([("1", 0, 10, 20, "0")]).path

    with pytest.raises(InputError, match="at least two"):
        compare([path])
    with pytest.raises(InputError, match="3 is not between 1 and 2"):
        compare([path, path], baseline=3)
    with pytest.raises(InputError, match="does not exist"):
        compare([path, path], csv=tmp_path / "nowhere" / "x.csv")


def test_a_run_that_failed_is_warned_of_first(make_run: MakeRun) -> None:
    whole = make_run([("1", 0, 0, 1, "0"), ("2", 0, 1, 2, "0")], name="whole", manifest={"result": "completed"})
    broken = make_run([("1", 0, 0, 1, "0")], name="broken", manifest={"result": "failed", "jobs": 2})
    unclear = make_run([("1", 0, 0, 1, "0")], name="unclear", manifest={"result": "failed"})
    out = io.StringIO()

    comparison = compare_runs([whole, broken, unclear])
    print_comparison(comparison, Console(file=out, width=200, highlight=False))

    assert comparison.warnings[:2] == [
        "broken failed: 1 of its 2 jobs have no outcome",
        "unclear failed: its results are incomplete",
    ]
    assert out.getvalue().startswith("warning: broken failed")
    assert "failed: 1 of its 2 jobs" in _subtitle(broken, broken.metrics, 0)
    assert "failed" not in _subtitle(whole, whole.metrics, 0)
