"""Three policies, two traces, ten workload seeds: every number of the report's tables, computed again by scipy."""

from __future__ import annotations

import csv
import itertools
import math
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import batkube
from batkube.cli.app import build_app
from batkube.experiments.results.findings import read_findings
from batkube.outputs.measures.intervals import paired_difference_of
from batkube.outputs.measures.metric_columns import column_of

POLICIES = {"FCFS": "policy:fcfs", "EASY": "policy:easy", "conservative": "policy:conservative"}
COLUMNS = ("mean_waiting_time", "mean_bounded_slowdown", "mean_utilisation")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Two traces, as files: no reader of this test needs those of an archive."""
    folder = tmp_path_factory.mktemp("traces")
    commands = {
        "day": shlex.split("lublin --jobs 1500 --machines 64 --seed 1"),
        "steady": shlex.split("poisson --jobs 1500 --interval 300 --run-time exponential:3600 --size choice:1,4,16"),
    }
    for name, words in commands.items():
        done = CliRunner().invoke(build_app(), ["workload", "generate", *words, "-o", str(folder / f"{name}.swf")])
        assert done.exit_code == 0, done.output
    return {
        name: {"workload": {"resample": str(folder / f"{name}.swf"), "window": "120 jobs"}, "platform": "64x1"}
        for name in commands
    }


@pytest.fixture(scope="module")
def tables(traces: dict[str, dict[str, object]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment and its tables, as the command line writes them."""
    out = tmp_path_factory.mktemp("showcase") / "out"
    experiment = {"axes": {"trace": traces, "scheduler": POLICIES}, "seeds": {"from": 1, "to": 10}}
    assert not batkube.experiment(experiment, out, jobs=2).failures
    words = ["report", str(out), "--tables", str(out / "tables"), "--columns", ",".join(COLUMNS)]
    assert CliRunner().invoke(build_app(), words).exit_code == 0
    return out


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_every_mean_and_interval_equals_that_of_scipy(tables: Path) -> None:
    frame = read_findings(tables).frame
    rows = rows_of(tables / "tables" / "results.csv")

    assert len(rows) == 6 * len(COLUMNS)
    for row in rows:
        runs = frame[(frame["trace"] == row["trace"]) & (frame["scheduler"] == row["scheduler"])]
        values = runs[row["column"]].to_numpy()
        low, high = stats.t.interval(0.95, 9, values.mean(), stats.sem(values))
        assert (len(values), int(row["n"])) == (10, 10)
        numbers = [float(row[name]) for name in ("mean", "sd", "low", "high")]
        assert numbers == pytest.approx([values.mean(), values.std(ddof=1), low, high], rel=1e-9)


def test_every_difference_equals_that_of_scipy_with_and_without_bonferroni(tables: Path) -> None:
    frame = read_findings(tables).frame
    rows = rows_of(tables / "tables" / "differences.csv")

    pairs = list(itertools.combinations(POLICIES, 2))
    assert [(row["less"], row["scheduler"]) for row in rows if row["column"] == COLUMNS[0]] == pairs * 2
    is_clear_alone = 0
    for row in rows:
        first, second = (
            frame[(frame["trace"] == row["trace"]) & (frame["scheduler"] == name)].sort_values("seed")[row["column"]]
            for name in (row["less"], row["scheduler"])
        )
        values = second.to_numpy() - first.to_numpy()
        test = stats.ttest_rel(second, first)
        interval = test.confidence_interval(0.95)
        numbers = [float(row[name]) for name in ("difference", "low", "high")]
        assert numbers == pytest.approx([values.mean(), interval.low, interval.high], rel=1e-9)
        assert [int(row[name]) for name in ("pairs", "lower", "higher")] == [10, (values < 0).sum(), (values > 0).sum()]
        unlike = int((values != 0).sum())
        by_sign = stats.binomtest(int((values < 0).sum()), unlike).pvalue if unlike else 1.0
        assert float(row["sign_test_p"]) == pytest.approx(by_sign, rel=1e-9)
        # Six comparisons in each column: Bonferroni's p-value is six times that of one.
        assert int(row["is_clear"]) == int(test.pvalue < 0.05)
        assert int(row["is_clear_among_all"]) == int(6 * test.pvalue < 0.05)
        is_clear_alone += int(row["is_clear"])
    assert 0 < is_clear_alone < len(rows), "a test in which every difference is clear, or none, shows little"


def test_each_seed_gives_the_same_workload_for_every_policy(tables: Path) -> None:
    experiment = batkube.ExperimentResults(tables)
    submits = {}
    for run in experiment.runs:
        place = run["axes"]["trace"], run["seed"], run["axes"]["scheduler"]
        submits[place] = tuple(experiment.run(run["run"]).jobs["submission_time"])

    assert len(set(submits.values())) == 20
    for (trace, seed, _), times in submits.items():
        assert times == submits[trace, seed, "FCFS"]


def test_latex_tables_round_the_numbers_of_the_csv_files(tables: Path) -> None:
    lines = [line for line in (tables / "tables" / "results.tex").read_text().splitlines() if "conservative" in line]
    rows = [row for row in rows_of(tables / "tables" / "results.csv") if row["scheduler"] == "conservative"]

    cells = [cell for line in lines for cell in line.removesuffix(r"\\").split("&")[3:]]
    assert len(cells) == len(rows)
    for cell, row in zip(cells, rows, strict=True):
        mean = float(cell.partition("$ $")[0].replace("$", "").replace(r"\,", "").strip())
        mean_in_table = float(row["mean"]) * column_of(row["column"]).factor
        # Means are rounded to the digits that their intervals leave.
        half = (float(row["high"]) - float(row["low"])) / 2 * column_of(row["column"]).factor
        assert math.isclose(mean, mean_in_table, abs_tol=max(half * 0.1, 0.5 * 10 ** -_decimals(mean)), rel_tol=0.0)
    assert np.isfinite([float(row["mean"]) for row in rows]).all()


def _decimals(value: float) -> int:
    return len(repr(value).partition(".")[2])


def test_the_sign_test_is_marked_even_if_the_interval_is_wide(tables: Path) -> None:
    """One workload of ten with a huge difference makes the interval hold 0; nine others say which one is lower."""
    latex = (tables / "tables" / "differences.tex").read_text()
    rows = rows_of(tables / "tables" / "differences.csv")
    agreeing = sum(float(row["sign_test_p"]) < 0.05 for row in rows)

    assert 0 < agreeing < len(rows)
    assert latex.count(r"\S$") == agreeing + 1  # and what it means
    page = (tables / "report.html").read_text()
    assert "§ The pairs agree on which one is lower" in page
    difference = paired_difference_of([900.0, *range(10, 19)], [100.0, *range(1, 10)])
    assert difference is not None
    assert (difference.lower, difference.is_clear, difference.passes_sign_test) == (10, False, True)
