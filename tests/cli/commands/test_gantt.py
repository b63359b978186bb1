"""`batkube gantt`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PIL import Image
from tests.commands import RUN, WORKLOAD, run_batkube, run_in_process

from batkube.cli.commands.gantt import ColourBy, gantt
from batkube.kernel.errors import InputError
from batkube.outputs.results import Results


def colours(path: Path) -> dict[tuple[int, int, int], int]:
    """Return the number of pixels by colour, for colours that fill at least a thousandth of the image."""
    with Image.open(path) as image:
        pixels = image.convert("RGB").getcolors(image.width * image.height) or []
        return {colour: count for count, colour in pixels if count > image.width * image.height / 1000}


def test_the_command_draws_a_window_coloured_by_user(small: Results, tmp_path: Path) -> None:
    gantt(small.path, tmp_path / "x.png", start="1m", end="2m30s", by=ColourBy.USER, title="T")

    assert len(colours(tmp_path / "x.png")) >= 4


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("x.gif", {}, r"use \.svg, \.pdf, \.pgf, \.png or \.html"),
        ("nowhere/x.svg", {}, "does not exist"),
        (".svg/x.svg", {}, "does not exist"),
        ("x.svg", {"start": "5x"}, "--from: '5x' is not a duration"),
        ("x.svg", {"start": "2m", "end": "1m"}, "is not a valid time range"),
        ("x.svg", {"start": "1h", "end": "2h"}, "nothing runs between 1 h and 2 h"),
    ],
)
def test_charts_that_cannot_be_drawn_are_rejected(
    small: Results, tmp_path: Path, target: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        gantt(small.path, tmp_path / target, **options)
    assert not (tmp_path / target).exists()


def test_no_warnings_about_fonts_are_printed(tmp_path: Path) -> None:
    """The font cache may be unwritable, and the font may lack the glyphs of a name."""
    jobs = [{"id": f"作业{number}", "subtime": 0, "res": 1, "profile": "d"} for number in range(3)]
    (tmp_path / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    run_batkube(tmp_path, *RUN, "--quiet")
    chart = run_in_process(tmp_path, "gantt", "out", "-o", "g.png")
    page = run_batkube(tmp_path, "report", "out", "-o", "r.html", env={**os.environ, "MPLCONFIGDIR": "/proc/none"})

    assert (chart.returncode, chart.stderr) == (0, "")
    assert (page.returncode, page.stderr) == (0, "")
