"""Gantt charts as figures and files."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import batkube
import published
from batkube.kernel.errors import InputError
from batkube.outputs.charts.palette import FILLS
from batkube.outputs.gantt.chart import draw_gantt, save_gantt
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun


def colours(path: Path) -> dict[tuple[int, int, int], int]:
    """Return the number of pixels by colour, for colours that fill at least a thousandth of the image."""
    with Image.open(path) as image:
        pixels = image.convert("RGB").getcolors(image.width * image.height) or []
        return {colour: count for count, colour in pixels if count > image.width * image.height / 1000}


def rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def test_a_png_shows_every_job_in_its_colour(small: Results, tmp_path: Path) -> None:
    save_gantt(small, tmp_path / "x.png")

    counts = colours(tmp_path / "x.png")
    assert {rgb(FILLS[1]), rgb(FILLS[2]), rgb(FILLS[3])} <= set(counts)
    # Job 1 has four rows for 100 s, job 3 one row for 50 s; borders and labels take a little of both.
    assert counts[rgb(FILLS[1])] / counts[rgb(FILLS[3])] == pytest.approx(8, rel=0.15)


def test_an_svg_has_the_same_bytes_on_any_machine(small: Results, tmp_path: Path) -> None:
    """Hash seed, matplotlibrc and a missing home folder change nothing, and no warning is printed."""
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "matplotlibrc").write_text("font.size: 30\nsavefig.bbox: tight\naxes.facecolor: red\n")
    (tmp_path / "file").write_text("")
    program = (
        "import sys; from batkube.cli.commands.gantt import gantt; from pathlib import Path; "
        "gantt(*map(Path, sys.argv[1:]))"
    )

    for number, home in (("1", settings), ("2", tmp_path / "file" / "below")):
        result = subprocess.run(
            [
                sys.executable,
                "-W",
                "always",
                "-W",
                "ignore::DeprecationWarning",
                "-c",
                program,
                small.path,
                tmp_path / f"{number}.svg",
            ],
            env=os.environ | {"PYTHONHASHSEED": number, "MPLCONFIGDIR": str(home)},
            capture_output=True,
            check=True,
        )
        assert (result.stdout, result.stderr) == (f"wrote {tmp_path / number}.svg\n".encode(), b"")

    save_gantt(small, tmp_path / "3.svg")
    first, second, third = ((tmp_path / f"{number}.svg").read_bytes() for number in "123")
    assert first == second == third
    ElementTree.fromstring(first)


def test_a_png_has_the_same_bytes_twice(small: Results, tmp_path: Path) -> None:
    save_gantt(small, tmp_path / "1.png")
    save_gantt(Results(small.path), tmp_path / "2.png")

    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "2.png").read_bytes()


def test_a_figure_has_a_row_per_machine_and_a_panel_below(small: Results) -> None:
    figure = draw_gantt(small, title="Tuesday's run")

    rows, panel, queue = figure.axes
    assert [label.get_text() for label in rows.get_yticklabels()] == ["node-0", "node-1", "node-2", "node-3"]
    assert [text.get_text() for text in rows.texts] == ["1", "2", "2", "3"]
    assert panel.get_xlabel() == "time (s)"
    assert (panel.get_ylabel(), queue.get_ylabel()) == ("utilisation", "jobs waiting")
    assert [text.get_text() for text in figure.texts] == [
        "Tuesday's run",
        "policy:easy  ·  3 jobs on 4 machines  ·  makespan 2 min 40 s  ·  mean wait 1 min 1 s  ·  utilisation 98.4 %",
    ]


def test_the_panel_shows_utilisation_and_queue(small: Results) -> None:
    _, panel, queue = draw_gantt(small).axes

    assert panel.lines[0].get_xydata().tolist() == [[0, 1], [100, 1], [150, 0.75], [160, 0]]
    assert queue.lines[0].get_xydata().tolist() == [[0, 0], [5, 1], [10, 2], [100, 0], [160, 0]]


def test_failed_jobs_are_hatched(small: Results) -> None:
    rows = draw_gantt(small).axes[0]

    successful, failed = (collection for collection in rows.collections if len(collection.get_paths()) == 2)
    assert successful.get_hatch() is None
    assert failed.get_hatch()
    assert [path.get_extents().x0 for path in failed.get_paths()] == [100, 100]


def test_a_window_shows_only_the_jobs_that_run_in_it(small: Results) -> None:
    rows = draw_gantt(small, window=(120, 155)).axes[0]

    assert rows.get_xlim() == (120, 155)
    assert sorted({text.get_text() for text in rows.texts}) == ["2", "3"]


def test_charts_of_thousands_of_jobs_stay_small_and_readable(crowded: Results, tmp_path: Path) -> None:
    figure = draw_gantt(crowded)
    save_gantt(crowded, tmp_path / "x.svg")

    rows = figure.axes[0]
    assert len(rows.collections) == 1
    assert len(rows.collections[0].get_paths()) == 6000
    assert rows.collections[0].get_rasterized()
    assert 10 <= len(rows.get_yticks()) <= 25
    assert len(rows.texts) == 0
    assert (tmp_path / "x.svg").stat().st_size < 3_000_000
    assert b"<image" in (tmp_path / "x.svg").read_bytes()


def test_a_run_without_known_machines_is_rejected_and_a_partly_known_one_has_a_remark(
    make_run: MakeRun, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        save_gantt(make_run([("1", 0, None, None, "")], name="none"), tmp_path / "x.svg")

    figure = draw_gantt(make_run([("1", 0, 0, 5, "0"), ("2", 0, 0, 5, "")], name="some"))
    assert "1 not drawn: their machines are unknown" in figure.texts[1].get_text()


def test_an_over_allocated_published_run_can_be_drawn(shared_data: Path) -> None:
    results = Results(shared_data / "batkube" / "simulated" / "200_delay170_simu_0_jobs.csv")

    rows = draw_gantt(results).axes[0]

    # Jobs 172 and 176 are on the one-core machine 5 at the same time, and are drawn one below the other.
    heights = {text.get_text(): text.get_position()[1] for text in rows.texts}
    assert len(heights) == 200
    assert (heights["172"], heights["176"], heights["2"]) == (5.25, 5.75, 5.5)


def test_boxes_on_a_shared_machine_are_as_high_as_their_cpu_and_do_not_overlap(tmp_path: Path) -> None:
    run = batkube.run(workload=published.kit(tmp_path), platform=published.SIX_CORES, scheduler="policy:first-fit")

    figure = draw_gantt(run)

    boxes = [path.get_extents() for path in figure.axes[0].collections[0].get_paths()]
    cpu_of = {row["job"]: float(row["cpu"]) for row in published.table("kit.csv")}
    heights: Counter[tuple[float, float]] = Counter()  # by span: a job without a gap of its height has two boxes
    for box in boxes:
        heights[box.x0, box.x1] += box.height
    expected: Counter[tuple[float, float]] = Counter()
    for job, start, end in run.jobs[["job_id", "starting_time", "finish_time"]].itertuples(index=False):
        expected[start, end] += cpu_of[str(job)] / 6
    assert heights == pytest.approx(expected, abs=0.005)  # the row has a margin
    for one, other in itertools.combinations(boxes, 2):
        assert not (one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1)
    assert "39 jobs on 1 machine  ·  makespan 9 h 2 min  ·  mean wait 36 min 41 s" in figure.texts[1].get_text()


@pytest.mark.parametrize(
    ("path", "boxes", "subtitle"),
    [
        ("batkube/emulated/KIT_0_jobs.csv", 28, "mean wait 48 min 4 s  ·  11 not drawn: their machines are unknown"),
        ("medium_late/easy", 1311, "801 jobs on 32 machines  ·  makespan 4 h 28 min  ·  mean wait 9.516 s"),
    ],
)
def test_published_runs_are_drawn_as_far_as_their_machines_are_known(
    shared_data: Path, path: str, boxes: int, subtitle: str
) -> None:
    figure = draw_gantt(Results(shared_data / path))

    assert len(figure.axes[0].collections[0].get_paths()) == boxes
    assert subtitle in figure.texts[1].get_text()


def test_an_unwritable_target_is_rejected(small: Results, tmp_path: Path) -> None:
    (tmp_path / "x.svg").mkdir()

    with pytest.raises(InputError, match="is a folder"):
        save_gantt(small, tmp_path / "x.svg")


def test_an_unknown_colouring_is_rejected(small: Results) -> None:
    with pytest.raises(InputError, match="'size' is not one of job, user"):
        draw_gantt(small, color_by="size")
