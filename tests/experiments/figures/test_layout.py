"""Figures of many panels, series and long names: in print they fit the width of a column and the height of a page."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from batkube.experiments.description.figures import read_figures
from batkube.experiments.figures.charts import chart_of
from batkube.experiments.figures.drawing import draw
from batkube.experiments.results.findings import read_findings
from batkube.kernel.errors import InputError
from batkube.outputs.charts.labels import FigureLabels
from report_pages import write_experiment

COLUMN_IN, PAGE_IN, PAGE_HEIGHT_IN = 3.5, 7.16, 9.0
LONG = "volcano@1.12.1 with gang and sla, in the queue of the department"
AXES = {
    "scheduler": ["fcfs", "policy:easy", "conservative", "kube-scheduler@1.34.4", LONG, "yunikorn@1.6.0"],
    "workload": ["burst", "spaced", "realistic"],
    "load": ["0.5", "0.7", "0.9", "1.1"],
}


def runs() -> list[dict[str, Any]]:
    """Return three seeds of each point; nothing waits at the lowest load, and the cluster is full at the highest."""
    points = itertools.product(*(enumerate(labels) for labels in AXES.values()), range(3))
    return [
        {
            "scheduler": scheduler,
            "workload": workload,
            "load": load,
            "seed": seed,
            "makespan": 1000 * (panel + 1) + 100 * series + 50 * place + seed,
            "mean_waiting_time": float(30 * place**2 * (series + 1)),
            "mean_utilisation": min(1.0, 0.4 + 0.21 * place + 0.01 * series),
        }
        for (series, scheduler), (panel, workload), (place, load), seed in points
    ]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_experiment(tmp_path_factory.mktemp("study"), AXES, runs())


def figure_of(study: Path, entry: dict[str, Any], width_in: float | None, labels: FigureLabels | None = None) -> Figure:
    findings = read_findings(study)
    chart = chart_of(read_figures([entry], findings.file, AXES)[0], findings)
    assert chart is not None
    figure = draw(chart, with_title=False, width_in=width_in, labels=labels)
    FigureCanvasAgg(figure).draw()
    return figure


def texts_of(figure: Figure) -> list[str]:
    texts = [text for axes in figure.axes for text in (*axes.get_yticklabels(), *axes.get_xticklabels())]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    texts += [axes.title for axes in figure.axes]
    return [text.get_text() for text in texts if text.get_visible()]


LINES = {"x": "load", "y": ["makespan", "mean_utilisation"], "by": "scheduler", "facet": "workload"}
BARS = {"kind": "bar", "x": "scheduler", "y": ["makespan", "mean_utilisation"], "facet": "workload"}
BOXES = {"kind": "box", "x": "scheduler", "y": ["makespan", "mean_utilisation"], "facet": "workload"}


@pytest.mark.parametrize("width_in", [COLUMN_IN, PAGE_IN])
@pytest.mark.parametrize("entry", [LINES, BARS, BOXES], ids=["lines", "bars", "boxes"])
def test_six_panels_fit_on_a_page_and_no_text_is_outside(study: Path, entry: dict[str, Any], width_in: float) -> None:
    figure = figure_of(study, entry, width_in)

    width, height = figure.get_size_inches()
    assert width == width_in
    assert height <= PAGE_HEIGHT_IN
    page = figure.bbox
    shown = [text for axes in figure.axes if axes.get_visible() for text in axes.texts]
    labels = [label for axes in figure.axes for label in (axes.xaxis.label, axes.yaxis.label)]
    labels += [text for axes in figure.axes for text in axes.get_yticklabels()]
    labels += [text for legend in figure.legends for text in legend.get_texts()]
    for text in [*shown, *labels]:
        box = text.get_window_extent()
        if text.get_text():
            assert box.x0 >= page.x0 - 2, text.get_text()
            assert box.x1 <= page.x1 + 2, text.get_text()
    panels = [axes.get_position() for axes in figure.axes if axes.get_visible()]
    assert all(min(panel.width, panel.height) > 0.05 for panel in panels), "a panel collapsed"
    assert not any(first.overlaps(second) for first, second in itertools.combinations(panels, 2))


@pytest.mark.parametrize("entry", [LINES, BARS, BOXES], ids=["lines", "bars", "boxes"])
def test_axes_of_utilisation_end_at_100_percent(study: Path, entry: dict[str, Any]) -> None:
    for width_in in (None, PAGE_IN):
        figure = figure_of(study, {**entry, "y": "mean_utilisation"}, width_in)
        for axes in (axes for axes in figure.axes if axes.get_visible()):
            axis, side = (axes.yaxis, "left") if entry is LINES else (axes.xaxis, "bottom")
            assert max(axis.get_majorticklocs()) <= 100
            bounds = axes.spines[side].get_bounds() or sorted(axis.get_view_interval())
            assert bounds[1] == pytest.approx(100) or bounds[1] < 100


def test_names_are_cut_unless_a_text_is_set_for_them(study: Path) -> None:
    for width_in, entry in itertools.product((None, COLUMN_IN, PAGE_IN), (LINES, {**BARS, "facet": ""})):
        labels = FigureLabels()
        assert LONG not in " ".join(texts_of(figure_of(study, entry, width_in, labels)))
        assert labels.cut_names == [LONG]

        labels = FigureLabels({LONG: "Volcano"})
        assert "Volcano" in texts_of(figure_of(study, entry, width_in, labels))
        assert labels.cut_names == []


def test_a_text_without_room_for_bars_is_rejected(study: Path) -> None:
    with pytest.raises(InputError, match="leave"):
        figure_of(study, BARS, 1.5)


def test_the_figure_states_values_that_a_logarithmic_axis_cannot_show(study: Path) -> None:
    entry = {"x": "load", "y": "mean_waiting_time", "by": "scheduler", "log": "y"}

    lines = figure_of(study, entry, COLUMN_IN)
    assert [axes.get_title("right") for axes in lines.axes] == ["▾ 6 values ≤ 0"]

    bars = figure_of(study, {**entry, "kind": "bar"}, COLUMN_IN)
    assert [axes.get_title("right") for axes in bars.axes] == ["6 values ≤ 0"]
    assert [text.get_text() for text in bars.axes[0].texts].count("≤ 0") == 6

    boxes = figure_of(study, {**entry, "kind": "box", "x": "scheduler", "by": ""}, COLUMN_IN)
    assert [axes.get_title("right") for axes in boxes.axes] == ["54 values ≤ 0"]

    linear = figure_of(study, {**entry, "log": "x"}, COLUMN_IN)
    assert [axes.get_title("right") for axes in linear.axes] == [""]


def test_a_line_is_interrupted_where_its_value_cannot_be_shown(tmp_path: Path) -> None:
    lonely = [{**run, "mean_waiting_time": float(run["load"] != "0.7")} for run in runs()]
    folder = write_experiment(tmp_path, AXES, lonely)

    figure = figure_of(folder, {"x": "load", "y": "mean_waiting_time", "log": "y"}, None)

    (line,) = (line for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 2)  # type: ignore[arg-type]
    assert [str(value) for value in line.get_ydata()] == ["1.0", "nan", "1.0", "1.0"]  # type: ignore[union-attr]
