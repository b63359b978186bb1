"""Charts over time as figures and files."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from typer.testing import CliRunner

from batkube.cli.app import build_app
from batkube.kernel.errors import InputError
from batkube.outputs.over_time.chart import draw_chart, save_chart
from batkube.outputs.over_time.chart_kinds import ChartKind
from batkube.outputs.results import Results


@pytest.mark.parametrize("kind", list(ChartKind))
@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_charts_have_the_requested_width_and_the_same_bytes_twice(
    kind: ChartKind, ending: str, runs: list[Results], tmp_path: Path
) -> None:
    arguments = ["chart", kind.value, *(str(run.path) for run in runs), "--width", "column"]
    for name in ("a", "b"):
        result = CliRunner().invoke(build_app(), [*arguments, "-o", str(tmp_path / f"{name}{ending}")])
        assert result.exit_code == 0, result.output

    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()
    assert draw_chart(kind, runs, width_in=3.5).get_size_inches()[0] == 3.5


def test_the_curves_of_two_runs_have_different_dashes(runs: list[Results]) -> None:
    lines = draw_chart(ChartKind.QUEUE, runs).axes[0].get_lines()

    assert [line.get_label() for line in lines] == ["fcfs", "easy"]
    assert len({str(line.get_linestyle()) + str(line._unscaled_dash_pattern) for line in lines}) == 2


def test_six_curves_differ_without_colours_and_their_legend_is_as_wide_as_the_figure(runs: list[Results]) -> None:
    more = [Results(runs[0].path, label=f"run {number} with a name that is long") for number in range(6)]

    figure = draw_chart(ChartKind.QUEUE, more, width_in=3.5)

    FigureCanvasAgg(figure).draw()
    lines = figure.axes[0].get_lines()
    assert len({(str(line._unscaled_dash_pattern), line.get_marker()) for line in lines}) == 6
    assert "None" not in {line.get_marker() for line in lines}
    (legend,) = figure.legends
    assert legend.get_window_extent().x1 <= figure.bbox.x1


def test_panels_of_many_runs_fit_on_a_page(runs: list[Results]) -> None:
    more = [Results(runs[0].path, label=f"run {number}") for number in range(8)]

    assert draw_chart(ChartKind.STATES, more, width_in=3.5).get_size_inches()[1] <= 9.0


def test_invalid_arguments_are_rejected(runs: list[Results], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not have the extension of an image format"):
        save_chart(ChartKind.QUEUE, runs, tmp_path / "x.doc")
    with pytest.raises(InputError, match="is not a valid time range"):
        draw_chart(ChartKind.QUEUE, runs, window=(50.0, 10.0))
    with pytest.raises(InputError, match=r"has no machine_states\.csv"):
        draw_chart(ChartKind.STATES, [Results(copy_jobs(runs[0], tmp_path))])


def copy_jobs(results: Results, folder: Path) -> Path:
    path = folder / "alone" / "jobs.csv"
    path.parent.mkdir()
    path.write_bytes((results.path / "jobs.csv").read_bytes())
    return path
