"""The SVG of a figure: the positions of marks relative to the ticks of its axes, and its texts."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from batkube.experiments.figures.gallery import save_figures
from experiments.figures.test_charts import AXES, grid
from report_pages import write_experiment

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"


class Box(NamedTuple):
    """A filled rectangle, in the units of the axes."""

    left: float
    right: float
    top: float
    bottom: float


class Picture:
    """An SVG that matplotlib wrote, read back in the numbers of its axes; an axis of names has rows 0, 1, …"""

    def __init__(self, path: Path) -> None:
        self.root = ElementTree.fromstring(path.read_text())
        self.texts = [text.text for text in self.root.iter(f"{SVG}text")]
        self._x, self._y = self._ticks("x"), self._ticks("y")

    def _ticks(self, axis: str) -> list[tuple[float, float]]:
        """Return the positions of the ticks of an axis, with their numbers."""
        ticks = []
        for row, tick in enumerate(group for group in self._groups(f"{axis}tick_")):
            (text,) = tick.iter(f"{SVG}text")
            number = re.fullmatch(r"[\d.]+", text.text or "")
            marks = [float(use.attrib[axis]) for use in tick.iter(f"{SVG}use")]
            # Names have no tick mark. Their text is centred on the row, its baseline a third of its size below.
            place = marks[0] if marks else float(text.attrib["y"]) - 3.42
            ticks.append((place, float(number.group()) if number else row))
        return ticks

    def _groups(self, name: str) -> Iterator[ElementTree.Element]:
        (axes,) = (group for group in self.root.iter(f"{SVG}g") if group.get("id") == "axes_1")
        return (group for group in axes.iter(f"{SVG}g") if group.get("id", "").startswith(name))

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return a point of the page in the numbers of the axes, which are linear."""
        (slope_x, zero_x), (slope_y, zero_y) = (
            np.polyfit(*zip(*ticks, strict=True), 1) for ticks in (self._x, self._y)
        )
        return round(float(zero_x + slope_x * x), 3), round(float(zero_y + slope_y * y), 3)

    def marks(self, colour: str) -> list[tuple[float, float]]:
        """Return the positions of marks filled with a colour; the ends of intervals are not filled."""
        groups = list(self._groups("line2d_"))
        shapes = {f"#{path.get('id')}": path.attrib["d"] for group in groups for path in group.iter(f"{SVG}path")}
        uses = [use for group in groups for use in group.iter(f"{SVG}use")]
        closed = [use for use in uses if shapes[use.attrib[HREF]].rstrip().endswith("z")]
        filled = [use for use in closed if f"fill: {colour};" in use.attrib["style"]]
        return sorted(self.place(float(use.attrib["x"]), float(use.attrib["y"])) for use in filled)

    def levels(self) -> set[float]:
        """Return the heights of lines across the whole width."""
        paths = [path for group in self._groups("line2d_") for path in group.findall(f"{SVG}path")]
        ends = [self._corners(path) for path in paths]
        return {corners[0][1] for corners in ends if len(corners) == 2 and corners[0][1] == corners[1][1]}

    def boxes(self) -> list[Box]:
        """Return the filled rectangles, without the background."""
        paths = [path for group in self._groups("patch_") for path in group.iter(f"{SVG}path")]
        boxes = []
        for path in paths:
            if "fill: none" not in path.attrib["style"] and "fill: #ffffff" not in path.attrib["style"]:
                x, y = zip(*self._corners(path), strict=True)
                boxes.append(Box(min(x), max(x), min(y), max(y)))
        return sorted(boxes, key=lambda box: (box.top, box.left))

    def _corners(self, path: ElementTree.Element) -> list[tuple[float, float]]:
        return [self.place(float(x), float(y)) for x, y in re.findall(r"[ML] ([\d.-]+) ([\d.-]+)", path.attrib["d"])]


def draw_picture(folder: Path, entry: Mapping[str, Any], runs: Sequence[dict[str, Any]] = ()) -> Picture:
    """Draw one figure of the experiment on AXES: makespans of 100 to 102 s under fcfs, 200 to 202 s under easy."""
    write_experiment(folder, AXES, list(runs) or grid(), figures=[entry])
    (path,) = save_figures(folder, folder / "figures")
    return Picture(path)


FCFS, EASY = "#33669a", "#b4442e"


def test_lines_pass_through_the_means_and_levels_are_at_their_values(tmp_path: Path) -> None:
    entry = {"x": "timeout", "y": "makespan", "by": "scheduler", "baselines": [{"y": "makespan", "value": 150}]}

    picture = draw_picture(tmp_path, entry)

    assert {"timeout (ms)", "makespan (min)", "fcfs", "easy", "fcfs, exact", "baseline"} <= set(picture.texts)
    for colour, mean_s in ((FCFS, 101), (EASY, 201)):
        assert np.array(picture.marks(colour)) == pytest.approx(
            np.array([[5, mean_s / 60], [10, mean_s / 60]]), abs=0.002
        )
    assert min(abs(level - 150 / 60) for level in picture.levels()) < 0.002


def test_bars_reach_from_zero_to_the_means_and_are_labelled_with_intervals(tmp_path: Path) -> None:
    picture = draw_picture(tmp_path, {"x": "scheduler", "y": "makespan", "kind": "bar", "by": "timeout"})

    bars = picture.boxes()
    assert [bar.left for bar in bars] == pytest.approx([0] * 6, abs=0.002)
    assert [bar.right * 60 for bar in bars] == pytest.approx([101] * 3 + [201] * 3, abs=0.2)
    assert [round((bar.top + bar.bottom) / 2) for bar in bars] == [0, 0, 0, 1, 1, 1]
    assert all(above.bottom < below.top for above, below in itertools.pairwise(bars)), "bars do not overlap"
    # Student's quantile for two degrees of freedom is 4.30, and the standard error 1 / √3.
    assert (picture.texts.count("1.683 ± 0.041 min"), picture.texts.count("3.350 ± 0.041 min")) == (3, 3)


def test_boxes_span_the_middle_half_of_the_values(tmp_path: Path) -> None:
    runs = [{**run, "makespan": 100 + 10 * number} for number, run in enumerate(grid())]  # nine of each scheduler

    picture = draw_picture(tmp_path, {"x": "scheduler", "y": "makespan", "kind": "box"}, runs)

    boxes = [end * 60 for box in picture.boxes() for end in (box.left, box.right)]
    assert boxes == pytest.approx([120, 160, 210, 250], abs=0.2)


def test_scatter_points_are_at_the_numbers_of_their_run(tmp_path: Path) -> None:
    picture = draw_picture(tmp_path, {"x": "makespan", "y": "mean_waiting_time"})

    places = sorted({(round(x), round(y)) for x, y in picture.marks(FCFS)})
    assert places == [(seconds, round(seconds / 10)) for seconds in (100, 101, 102, 200, 201, 202)]
