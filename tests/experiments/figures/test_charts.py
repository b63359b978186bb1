"""Charts: which runs count, how often, and the remarks on the others."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.experiments.description.conditions import read_conditions
from batkube.experiments.description.figures import read_figures
from batkube.experiments.figures.chart_data import Chart, label_amount, scale_of
from batkube.experiments.figures.charts import OWN_SERIES, chart_of
from batkube.experiments.figures.defaults import default_figures
from batkube.experiments.figures.gallery import charts_of, save_figures
from batkube.experiments.results.findings import read_findings
from batkube.kernel.errors import InputError
from report_pages import write_experiment

FILE = Path("study.yaml")
AXES = {"scheduler": ["fcfs", "easy"], "timeout": ["5ms", "10ms", "exact"]}


def grid(**more: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return three seeds of each point of AXES: the makespan is 100 for fcfs, 200 for easy, and the seed's number."""
    return [
        {
            "scheduler": scheduler,
            "timeout": timeout,
            "seed": seed,
            "makespan": base + seed,
            "mean_waiting_time": (base + seed) / 10,
            "mean_utilisation": 0.5,
            **more,
        }
        for (scheduler, base), timeout, seed in itertools.product(
            (("fcfs", 100), ("easy", 200)), AXES["timeout"], range(3)
        )
    ]


def chart_with(folder: Path, runs: list[dict[str, Any]], entry: dict[str, Any]) -> Chart:
    """Return the chart of one figure of an experiment on AXES."""
    findings = read_findings(write_experiment(folder, AXES, runs))
    chart = chart_of(read_figures([entry], findings.file, AXES)[0], findings)
    assert chart is not None
    return chart


def test_runs_become_means_per_series_and_labels_without_number_become_levels(
    tmp_path: Path,
) -> None:
    chart = chart_with(tmp_path, grid(), {"x": "timeout", "y": "makespan", "by": "scheduler"})

    (panel,) = chart.panels
    assert [series.label for series in panel.series] == ["fcfs", "easy"]
    assert [(point.x, point.sample.mean, point.sample.n) for point in panel.series[0].points] == [
        (0.005, 101.0, 3),
        (0.01, 101.0, 3),
    ]
    assert panel.series[0].points[0].sample.half == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    assert [(level.label, level.value) for level in panel.levels] == [("fcfs, exact", 101.0), ("easy, exact", 201.0)]
    assert (chart.x.unit, chart.x.categories) == ("s", ())


def test_byte_identical_repeats_count_once_but_all_their_real_times_count(tmp_path: Path) -> None:
    runs = [
        {
            "scheduler": "fcfs",
            "timeout": "exact",
            "seed": seed,
            "repeat": repeat,
            "digest": f"d{seed}",
            "makespan": seed,
        }
        | {"real_s": 1 + repeat}
        for seed in range(2)
        for repeat in range(1, 4)
    ]
    chart = chart_with(tmp_path, runs, {"x": "scheduler", "y": ["makespan", "real_s"], "kind": "bar"})

    assert [panel.series[0].points[0].sample.n for panel in chart.panels] == [2, 6]


def test_repeats_that_differ_all_count(tmp_path: Path) -> None:
    runs = [
        {"scheduler": "fcfs", "timeout": "exact", "repeat": repeat, "digest": f"d{repeat}", "makespan": repeat}
        for repeat in range(1, 4)
    ]
    chart = chart_with(tmp_path, runs, {"x": "scheduler", "y": "makespan", "kind": "bar"})

    assert chart.panels[0].series[0].points[0].sample.n == 3


def test_failed_runs_only_count_in_the_share_of_completed_runs(tmp_path: Path) -> None:
    runs = grid()
    for run in runs[:2]:
        run.update(state="failed", makespan="", failure="crashed")
    chart = chart_with(tmp_path, runs, {"x": "scheduler", "y": ["makespan", "completed"], "kind": "bar"})

    assert [panel.series[0].points[0].sample.n for panel in chart.panels] == [7, 9]
    share = chart.panels[1].series[0].points[0].sample
    assert share.mean == pytest.approx(100 * 7 / 9)
    assert 0 < share.low < share.mean < share.high <= 100
    assert "2 of 18 runs failed and do not count." in chart.remarks


def test_axes_that_a_figure_omits_are_averaged_with_a_remark(tmp_path: Path) -> None:
    chart = chart_with(tmp_path, grid(), {"x": "scheduler", "y": "makespan", "kind": "bar"})

    assert chart.panels[0].series[0].points[0].sample.n == 9
    assert chart.remarks == ("Means are over all values of timeout, so their spread is not only due to chance.",)


def test_conditions_select_runs(tmp_path: Path) -> None:
    entry = {"x": "scheduler", "y": "makespan", "kind": "bar", "where": {"timeout": "exact", "seed": "!= 1"}}

    chart = chart_with(tmp_path, grid(), entry)

    assert [point.values for point in chart.panels[0].series[0].points] == [(100.0, 102.0), (200.0, 202.0)]
    assert chart.remarks == ("Runs where timeout is exact and seed is not 1.",)


def test_columns_and_facets_make_a_grid_of_panels(tmp_path: Path) -> None:
    chart = chart_with(tmp_path, grid(), {"x": "scheduler", "y": ["makespan", "mean_utilisation"], "facet": "timeout"})

    assert [[(panel.facet, panel.column.label) for panel in row] for row in chart.rows] == [
        [("timeout 5ms", "makespan"), ("timeout 10ms", "makespan"), ("exact", "makespan")],
        [("timeout 5ms", "utilisation"), ("timeout 10ms", "utilisation"), ("exact", "utilisation")],
    ]
    assert chart.rows[1][0].series[0].points[0].sample.mean == 50.0  # a share is shown in per cent


def test_scatter_charts_show_single_runs(tmp_path: Path) -> None:
    chart = chart_with(tmp_path, grid(), {"x": "mean_waiting_time", "y": "makespan", "by": "scheduler"})

    assert chart.kind == "scatter"
    assert [len(series.points) for series in chart.panels[0].series] == [9, 9]


def test_values_of_zero_or_less_are_removed_from_logarithmic_axes_with_a_remark(tmp_path: Path) -> None:
    runs = [{**run, "makespan": 0 if run["timeout"] == "5ms" else run["makespan"]} for run in grid()]

    chart = chart_with(tmp_path, runs, {"x": "timeout", "y": "makespan", "log": "xy"})

    assert [point.x for point in chart.panels[0].series[0].points] == [0.01]
    assert "Values of 0 or less are not drawn on a logarithmic axis." in chart.remarks


def test_published_rows_are_converted_to_our_units_and_excluded_ones_are_counted(tmp_path: Path) -> None:
    (tmp_path / "sweep.csv").write_text("timeout,span\n5,120\n5,130\n10,90\n20,99999\n")
    published = {"file": "sweep.csv", "x": "timeout", "x-unit": "ms", "y": "span", "y-unit": "min", "label": "2020"}

    chart = chart_with(
        tmp_path,
        grid(),
        {"x": "timeout", "y": "makespan", "published": {**published, "where": {"span": "< 5000"}}},
    )

    own, published_series = chart.panels[0].series
    assert (own.label, published_series.label, published_series.is_published) == (OWN_SERIES, "2020", True)
    assert [(point.x, point.sample.mean, point.sample.n) for point in published_series.points] == [
        (0.005, 7500, 2),
        (0.01, 5400, 1),
    ]
    assert "“2020” shows rows where span < 5000: 1 of 4 are left out." in chart.remarks


def test_published_data_without_x_is_a_level_in_line_charts_and_a_bar_in_bar_charts(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("makespan\n150\n170\n")
    published = {"file": "runs.csv", "label": "measured"}

    line = chart_with(
        tmp_path / "a", grid(), {"x": "timeout", "y": "makespan", "published": {**published, "file": "../runs.csv"}}
    )
    bars = chart_with(
        tmp_path / "b",
        grid(),
        {"x": "scheduler", "y": "makespan", "kind": "bar", "published": {**published, "file": "../runs.csv"}},
    )

    assert [(level.label, level.value) for level in line.panels[0].levels] == [("exact", 151.0), ("measured", 160.0)]
    assert bars.x.categories == ("fcfs", "easy", "measured")
    assert bars.panels[0].series[1].points[0].x == 2.0


def test_a_condition_on_a_published_column_gives_a_share_of_the_published_runs(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text("delay,exit_code\n5,0\n5,1\n5,0\n10,1\n")
    published = {"file": "delays.csv", "x": "delay", "x-unit": "ms", "y": "exit_code = 0", "label": "2020"}

    chart = chart_with(tmp_path, grid(), {"x": "timeout", "y": "completed", "published": published})

    assert [point.sample.mean for point in chart.panels[0].series[1].points] == pytest.approx([200 / 3, 0])


def test_published_shares_are_drawn_unchanged(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("delay,rate\n5,.95\n10,1\n")
    published = {"file": "rates.csv", "x": "delay", "x-unit": "ms", "y": "rate", "label": "2020"}

    chart = chart_with(tmp_path, grid(), {"x": "timeout", "y": "completed", "published": published})

    points = chart.panels[0].series[1].points
    assert [(point.sample.mean, point.sample.has_interval) for point in points] == [(95.0, False), (100.0, False)]


def test_missing_published_data_is_a_remark_in_the_figure(tmp_path: Path) -> None:
    entry = {"x": "timeout", "y": "makespan", "published": {"file": "gone.csv", "label": "2020"}}

    chart = chart_with(tmp_path, grid(), entry)

    assert len(chart.panels[0].series) == 1
    assert "“2020” is not drawn" in chart.remarks[-1]


def test_each_published_jobs_file_is_a_run(shared_data: Path, tmp_path: Path) -> None:
    """The recorded runs of burst on a real cluster: 2467.18 ± 28.27 (standard deviation) over ten runs."""
    pattern = str(shared_data / "batkube" / "emulated" / "200_delay170_*_jobs.csv")

    chart = chart_with(
        tmp_path,
        grid(),
        {"x": "scheduler", "y": "makespan", "kind": "box", "published": {"jobs": pattern, "label": "k3s"}},
    )

    sample = chart.panels[0].series[1].points[0].sample
    assert sample.n == 10
    assert sample.mean == pytest.approx(2467.18, abs=0.005)
    assert sample.sd == pytest.approx(28.27, abs=0.005)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"x": "timout", "y": "makespan"}, "figures[1].x.timout: is not an axis"),
        ({"x": "timeout", "y": "state"}, "figures[1].y.state: is not a column of numbers"),
        ({"x": "timeout"}, "figures[1]: has no y"),
        ({"x": "timeout", "y": "makespan", "kind": "pie"}, "figures[1].kind.pie"),
        ({"x": "timeout", "y": "makespan", "series": "scheduler"}, "figures[1].series: is not a key here"),
        ({"x": "timeout", "y": "makespan", "by": "makespan"}, "figures[1].by.makespan"),
        ({"x": "timeout", "y": "makespan", "log": "z"}, "figures[1].log.z"),
        ({"x": "timeout", "y": "makespan", "where": {"makespan": "< much"}}, "'much' is not a number"),
        ({"x": "timeout", "y": "makespan", "where": ["a"]}, "is not a mapping"),
        ({"x": "timeout", "y": "makespan", "baselines": {"theory": "many"}}, "'many' is not a number"),
        ({"x": "timeout", "y": ["makespan", "real_s"], "baselines": {"theory": 1}}, "does not name the y"),
        ({"x": "timeout", "y": "makespan", "published": {"label": "2020"}}, "needs either a file or jobs"),
        ({"x": "timeout", "y": "makespan", "published": [{"file": "a", "x-unit": "cm"}]}, "published[1].x-unit.cm"),
        (
            {"x": "timeout", "y": "makespan", "facet": "scheduler", "published": {"file": "a", "facet": "fcsf"}},
            "figures[1].published.facet.fcsf: is not a panel of this figure",
        ),
        ({"x": "timeout", "y": {"makespan": 1}}, "is neither a string nor a list"),
        ("makespan", "figures[1]: is not a mapping"),
    ],
)
def test_an_invalid_figure_is_rejected_with_its_place(entry: object, problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_figures([entry], FILE, AXES)

    assert str(error.value).startswith(str(FILE))
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("label", "number"),
    [("20ms", 0.02), ("1.5h", 5400.0), ("16", 16.0), ("1e3", 1000.0), ("1.34.4", None), ("exact", None), ("nan", None)],
)
def test_labels_are_numbers_only_if_all_parse_as_numbers(label: str, number: float | None) -> None:
    assert label_amount(label) == (None if number is None else pytest.approx(number))


def test_an_axis_is_numeric_if_half_of_its_labels_are_numbers() -> None:
    assert scale_of("t", ["5ms", "10ms", "exact"], is_log=False).categories == ()
    assert scale_of("t", ["5", "easy", "exact"], is_log=False).categories == ("5", "easy", "exact")
    assert scale_of("t", ["5"], is_log=False).categories == ("5",)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_comparisons_compare_numbers(value: float, bound: float) -> None:
    less, not_less = (read_conditions({"x": f"{sign} {bound!r}"}, FILE, "where")[0] for sign in ("<", ">="))

    assert less.matches(value) == less.matches(repr(value)) == (value < bound)
    assert not_less.matches(value) != less.matches(value)
    assert not less.matches("")


def test_an_experiment_without_figures_gets_those_of_its_axes() -> None:
    numbers = default_figures({"scheduler": ["a", "b"], "machines": ["16", "32"], "workload": ["w", "v"]})
    names = default_figures({"scheduler": ["a", "b"], "workload": ["w", "v"]}, has_failures=True)

    assert [(spec.kind, spec.x, spec.by, spec.facet) for spec in numbers] == [
        ("line", "machines", "scheduler", "workload"),
        ("cdf", "", "scheduler", "workload"),
        ("cdf", "", "scheduler", "workload"),
    ]
    assert [(spec.kind, spec.x, spec.facet, spec.y) for spec in names] == [
        ("bar", "scheduler", "workload", ("makespan", "mean_waiting_time")),
        ("cdf", "", "workload", ("waiting_time",)),
        ("cdf", "", "workload", ("bounded_slowdown",)),
        ("bar", "scheduler", "workload", ("completed",)),
    ]
    assert default_figures({"scheduler": ["a"]}) == []


def test_every_kind_of_figure_is_drawn_reproducibly(tmp_path: Path) -> None:
    figures = [
        {
            "x": "timeout",
            "y": ["makespan", "completed"],
            "by": "scheduler",
            "baselines": [{"y": "makespan", "value": 150}],
        },
        {"x": "scheduler", "y": "makespan", "kind": "bar", "by": "timeout", "title": "Bars/of $x$ <b>"},
        {"x": "scheduler", "y": "makespan", "kind": "box", "facet": "timeout", "log": "y"},
        {"x": "makespan", "y": "mean_waiting_time", "log": "xy"},
    ]
    write_experiment(tmp_path, AXES, grid(), figures=figures)

    first, second = (save_figures(tmp_path, tmp_path / name) for name in ("first", "second"))

    assert [path.name for path in first] == [
        "01-makespan-and-runs-completed-by-timeout.svg",
        "02-bars-of-x-b.svg",
        "03-makespan-by-scheduler.svg",
        "04-mean-wait-by-makespan.svg",
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert "fcfs" in first[1].read_text()  # text is not converted to paths


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figures_can_be_written_for_papers(tmp_path: Path, kind: str, begins: bytes) -> None:
    write_experiment(tmp_path, AXES, grid(), figures=[{"x": "scheduler", "y": "makespan", "kind": "bar"}])

    (path,) = save_figures(tmp_path, tmp_path / "figures", kind)

    assert path.read_bytes().startswith(begins)


def test_an_experiment_without_completed_runs_has_no_charts(tmp_path: Path) -> None:
    runs = [{**run, "state": "failed", "makespan": "", "mean_waiting_time": ""} for run in grid()]
    findings = read_findings(
        write_experiment(tmp_path, AXES, runs, figures=[{"x": "timeout", "y": "makespan", "title": "T"}])
    )

    assert charts_of(findings) == ([], ["T"])
