"""Gantt charts in print: as wide as a column, and readable without colours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from typer.testing import CliRunner

import batkube
from batkube.cli.app import build_app
from batkube.kernel.errors import InputError
from batkube.outputs.charts.palette import STATES
from batkube.outputs.gantt.chart import draw_gantt, save_gantt
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun

COLUMN_IN, PAGE_IN = 3.5, 7.16


@pytest.mark.parametrize("width_in", [COLUMN_IN, PAGE_IN])
@pytest.mark.parametrize("by", ["job", "user", "state"])
def test_all_text_is_inside_a_page_of_the_requested_width(run: Results, width_in: float, by: str) -> None:
    figure = draw_gantt(run, color_by=by, width_in=width_in)

    FigureCanvasAgg(figure).draw()
    page = figure.bbox
    assert figure.get_size_inches()[0] == pytest.approx(width_in)
    texts = [*figure.texts, *(text for axes in figure.axes for text in [axes.xaxis.label, axes.yaxis.label])]
    texts += [label for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    for text in texts:
        box = text.get_window_extent()
        if text.get_text() and text.get_visible():
            assert box.x0 >= page.x0 - 1, text.get_text()
            assert box.x1 <= page.x1 + 1, text.get_text()
            assert box.y0 >= page.y0 - 1, text.get_text()
    rows = figure.axes[0].get_position()
    assert all(legend.get_window_extent().y1 < rows.y0 * page.height for legend in figure.legends)


def test_a_chart_in_print_has_no_default_title(run: Results) -> None:
    def texts(**options: object) -> list[str]:
        figure = draw_gantt(run, width_in=COLUMN_IN, **options)  # type: ignore[arg-type]
        return [text.get_text() for text in figure.texts if text.get_text()]

    assert texts() == []
    assert texts(title="EASY") == ["EASY"]


def test_final_states_are_distinguishable_without_colours(run: Results) -> None:
    rows = draw_gantt(run, color_by="state", width_in=COLUMN_IN).axes[0]

    assert len({entry.hatch for entry in STATES.values() if entry.is_failure}) == 3
    box_counts = {one.get_hatch(): len(one.get_paths()) for one in rows.collections if len(one.get_paths()) == 12}
    assert box_counts == {None: 12, **{entry.hatch: 12 for entry in STATES.values() if entry.is_failure}}


def test_failed_jobs_are_hatched_among_users(run: Results) -> None:
    rows = draw_gantt(run, color_by="user", width_in=PAGE_IN).axes[0]

    (failed,) = (one for one in rows.collections if one.get_hatch() == "/////")
    assert len(failed.get_paths()) == 36


def test_labels_have_enough_contrast_on_every_fill(tmp_path: Path) -> None:
    """At least 4.5:1 as defined by WCAG 2, also on the dark red of later jobs."""
    fcfs, easy = (
        batkube.run(
            workload={"generate": "lublin", "jobs": 40, "machines": 16, "seed": 3},
            platform="16x1",
            scheduler=f"policy:{name}",
            out=tmp_path / name,
        )
        for name in ("fcfs", "easy")
    )
    rows = draw_gantt(fcfs, against=easy, width_in=PAGE_IN).axes[0]

    contrasts = []
    for text in rows.texts:
        x, y = text.get_position()
        (fill,) = (
            face
            for collection in rows.collections
            for path, face in zip(collection.get_paths(), collection.get_facecolors(), strict=False)
            if path.vertices.shape == (5, 2) and path.contains_point((x, y))
        )
        contrasts.append(contrast(to_rgb(text.get_color()), tuple(fill[:3])))
    assert len(contrasts) > 5
    assert {to_rgb(text.get_color()) for text in rows.texts} >= {(1.0, 1.0, 1.0)}, "no later job has a label"
    assert min(contrasts) >= 4.5


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    def luminance(colour: tuple[float, ...]) -> float:
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_same_run_gives_the_same_bytes(run: Results, tmp_path: Path, kind: str) -> None:
    for name in ("1", "2"):
        save_gantt(run, tmp_path / f"{name}.{kind}", width_in=COLUMN_IN)

    assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


def test_the_fonts_of_a_pdf_are_accepted_by_journals(run: Results, tmp_path: Path) -> None:
    """TrueType (Type 42), not Type 3, which IEEE and ACM reject."""
    save_gantt(run, tmp_path / "x.pdf", width_in=COLUMN_IN)

    content = (tmp_path / "x.pdf").read_bytes()
    assert b"/Subtype /Type0" in content
    assert b"/Subtype /Type3" not in content


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX: install texlive-latex-recommended")
def test_latex_compiles_a_pgf_chart(run: Results, tmp_path: Path) -> None:
    arguments = ["gantt", str(run.path), "-o", str(tmp_path / "chart.pgf"), "--by", "user", "--width", "column"]
    CliRunner().invoke(build_app(), arguments, catch_exceptions=False)
    (tmp_path / "paper.tex").write_text(
        "\\documentclass[twocolumn]{article}\\usepackage{pgf}\\begin{document}\\input{chart.pgf}\\end{document}"
    )

    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    result = subprocess.run(latex, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert result.returncode == 0, result.stdout[-3000:]


def test_too_many_pgf_boxes_and_html_widths_are_rejected(run: Results, make_run: MakeRun, tmp_path: Path) -> None:
    many = make_run([(str(job), 0, job, job + 1, str(job % 4)) for job in range(2001)], name="many")

    with pytest.raises(InputError, match="has 2,001 boxes, but PGF supports at most 2,000"):
        save_gantt(many, tmp_path / "x.pgf")
    with pytest.raises(InputError, match="as wide as its window"):
        save_gantt(run, tmp_path / "x.html", width_in=COLUMN_IN)
