"""Inline SVG."""

from __future__ import annotations

import shutil

import pytest
from matplotlib.backends import backend_pgf
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from batkube.outputs.charts.inline_svg import inline_figure, inline_svg, render_figure
from batkube.outputs.charts.style import chart_style


def test_ids_are_prefixed_and_labels_stay_unchanged() -> None:
    svg = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="1"><metadata>x</metadata>'
        '<g id="a" style="fill: #222222; clip-path: url(#b)"><use xlink:href="#a"/>'
        '<text style="font: 9px \'DejaVu Sans\'">id="a" #222222</text></g></svg>'
    )

    markup = inline_svg(svg, prefix="p", title="A < B", description="words")

    assert markup == (
        '<svg width="1" role="img" aria-labelledby="p-title p-desc"><title id="p-title">A &lt; B</title>'
        '<desc id="p-desc">words</desc><g id="p-a" style="fill: var(--ink, #222222); clip-path: url(#p-b)">'
        "<use href=\"#p-a\"/><text style=\"font: 9px 'DejaVu Sans', Verdana, 'Bitstream Vera Sans', 'Segoe UI', "
        'Arial, sans-serif">id="a" #222222</text></g></svg>'
    )


class StubLatex:
    """Measures text like a LaTeX that is not installed."""

    def get_width_height_descent(self, text: str, prop: object) -> tuple[float, float, float]:
        return 10.0, 10.0, 0.0


def test_no_text_of_a_pgf_figure_is_a_command_to_latex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_pgf.LatexManager, "_get_cached_or_new", StubLatex)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with chart_style():
        figure = Figure()
        axes = figure.subplots()
        axes.set_title(r"\input{/etc/passwd}")
        axes.set_xticks([0, 1], ["$$", "50 % & a_b^2 #1 ~ ∆"])
        axes.legend(handles=[Line2D([], [], label=r"$\catcode$")])

    drawing = render_figure(figure, "pgf").decode()

    assert r"\textbackslash{}input\{/etc/passwd\}" in drawing
    assert r"\$\$" in drawing
    assert r"50 \% \& a\_b\textasciicircum{}2 \#1 \textasciitilde{} ?" in drawing
    assert r"\$\textbackslash{}catcode\$" in drawing
    assert "\\input" not in drawing


def test_files_have_a_white_background_and_drawings_in_pages_have_none() -> None:
    with chart_style():
        figure = Figure()
        figure.subplots()

    in_file, in_page = render_figure(figure, "svg").decode(), str(inline_figure(figure, prefix="p", title="t"))

    assert (in_file.count("fill: #ffffff"), in_page.count("fill: #ffffff")) == (2, 0)
