from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import batkube
import published
from batkube.cli.commands.gantt import ColourBy, gantt
from batkube.kernel.errors import InputError
from batkube.outputs.charts.palette import FILLS, OTHERS_FILL, STATES, colour_jobs
from batkube.outputs.charts.time_axis import time_axis
from batkube.outputs.gantt.chart import draw_gantt, save_gantt
from batkube.outputs.measures.occupancy.step_functions import StepFunction, queue_steps
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from outputs.conftest import MakeRun

KILLED = {"final_state": "COMPLETED_KILLED", "success": 0}


@pytest.fixture
def small(make_run: MakeRun) -> Results:
    return make_run(
        [
            ("1", 0, 0, 100, "0-3", {"user": "ada"}),
            ("2", 5, 100, 160, "0-1 3", {"user": "bob"} | KILLED),
            ("3", 10, 100, 150, "2", {"user": "bob"}),
        ],
        manifest={"scheduler": "policy:easy", "platform": {"machines": [{"name": f"node-{i}"} for i in range(4)]}},
    )


@pytest.fixture
def crowded(make_run: MakeRun) -> Results:
    """1,000 machines and 6,000 jobs of 100 consecutive machines each."""
    return make_run(
        [
            (str(job), 0, 10 * (job // 10), 10 * (job // 10) + 9, f"{100 * (job % 10)}-{100 * (job % 10) + 99}")
            for job in range(6000)
        ]
    )


def colours(path: Path) -> dict[tuple[int, int, int], int]:
    """Pixels by colour, of those colours that fill at least a thousandth of the picture."""
    with Image.open(path) as image:
        counted = image.convert("RGB").getcolors(image.width * image.height) or []
        return {colour: count for count, colour in counted if count > image.width * image.height / 1000}


def rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def test_a_png_shows_every_job_in_its_colour(small: Results, tmp_path: Path) -> None:
    save_gantt(small, tmp_path / "x.png")

    seen = colours(tmp_path / "x.png")
    assert {rgb(FILLS[1]), rgb(FILLS[2]), rgb(FILLS[3])} <= set(seen)
    # Job 1 has four rows for 100 s, job 3 one row for 50 s; borders and labels take a little of both.
    assert seen[rgb(FILLS[1])] / seen[rgb(FILLS[3])] == pytest.approx(8, rel=0.15)


def test_an_svg_repeats_byte_for_byte_on_any_machine_and_without_a_word(small: Results, tmp_path: Path) -> None:
    """Neither the hash seed, nor a matplotlibrc that changes everything, nor a first use without a home shows."""
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "matplotlibrc").write_text("font.size: 30\nsavefig.bbox: tight\naxes.facecolor: red\n")
    (tmp_path / "file").write_text("")
    program = (
        "import sys; from batkube.cli.commands.gantt import gantt; from pathlib import Path; "
        "gantt(*map(Path, sys.argv[1:]))"
    )

    for number, home in (("1", settings), ("2", tmp_path / "file" / "below")):
        ended = subprocess.run(
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
        assert (ended.stdout, ended.stderr) == (f"wrote {tmp_path / number}.svg\n".encode(), b"")

    save_gantt(small, tmp_path / "3.svg")
    first, second, third = ((tmp_path / f"{number}.svg").read_bytes() for number in "123")
    assert first == second == third
    ElementTree.fromstring(first)


def test_a_png_repeats_byte_for_byte(small: Results, tmp_path: Path) -> None:
    save_gantt(small, tmp_path / "1.png")
    save_gantt(Results(small.path), tmp_path / "2.png")

    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "2.png").read_bytes()


def test_a_figure_has_rows_of_machines_and_a_panel_below(small: Results) -> None:
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


def test_utilisation_and_queue_are_drawn_as_they_were(small: Results) -> None:
    _, panel, queue = draw_gantt(small).axes

    assert panel.lines[0].get_xydata().tolist() == [[0, 1], [100, 1], [150, 0.75], [160, 0]]
    assert queue.lines[0].get_xydata().tolist() == [[0, 0], [5, 1], [10, 2], [100, 0], [160, 0]]


def test_jobs_that_ended_badly_are_hatched(small: Results) -> None:
    rows = draw_gantt(small).axes[0]

    fine, alarming = (collection for collection in rows.collections if len(collection.get_paths()) == 2)
    assert fine.get_hatch() is None
    assert alarming.get_hatch()
    assert [path.get_extents().x0 for path in alarming.get_paths()] == [100, 100]


def test_a_window_shows_only_what_runs_in_it(small: Results) -> None:
    rows = draw_gantt(small, window=(120, 155)).axes[0]

    assert rows.get_xlim() == (120, 155)
    assert sorted({text.get_text() for text in rows.texts}) == ["2", "3"]


def test_a_thousand_machines_and_thousands_of_jobs_stay_small_and_readable(crowded: Results, tmp_path: Path) -> None:
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


def test_a_run_without_known_machines_is_refused_and_a_partly_known_one_says_so(
    make_run: MakeRun, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        save_gantt(make_run([("1", 0, None, None, "")], name="none"), tmp_path / "x.svg")

    figure = draw_gantt(make_run([("1", 0, 0, 5, "0"), ("2", 0, 0, 5, "")], name="some"))
    assert "1 not drawn: their machines are unknown" in figure.texts[1].get_text()


def test_an_over_allocated_published_run_can_be_drawn(shared_data: Path) -> None:
    results = Results(shared_data / "batkube" / "simulated" / "200_delay170_simu_0_jobs.csv")

    rows = draw_gantt(results).axes[0]

    # Jobs 172 and 176 are on the one-core machine 5 at the same time: both are there, one below the other.
    heights = {text.get_text(): text.get_position()[1] for text in rows.texts}
    assert len(heights) == 200
    assert (heights["172"], heights["176"], heights["2"]) == (5.25, 5.75, 5.5)


def test_jobs_that_share_a_machine_have_boxes_of_the_height_of_their_cpu_that_do_not_overlap(tmp_path: Path) -> None:
    run = batkube.run(workload=published.kit(tmp_path), platform=published.SIX_CORES, scheduler="policy:first-fit")

    figure = draw_gantt(run)

    boxes = [path.get_extents() for path in figure.axes[0].collections[0].get_paths()]
    cpu_of = {row["job"]: float(row["cpu"]) for row in published.table("kit.csv")}
    drawn: Counter[tuple[float, float]] = Counter()  # by span: a job without a gap of its height has two boxes
    for box in boxes:
        drawn[box.x0, box.x1] += box.height
    wanted: Counter[tuple[float, float]] = Counter()
    for job, start, end in run.jobs[["job_id", "starting_time", "finish_time"]].itertuples(index=False):
        wanted[start, end] += cpu_of[str(job)] / 6
    assert drawn == pytest.approx(wanted, abs=0.005)  # the row has a margin
    for one, other in itertools.combinations(boxes, 2):
        assert not (one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1)
    assert "39 jobs on 1 machine  ·  makespan 9 h 2 min  ·  mean wait 36 min 41 s" in figure.texts[1].get_text()


@pytest.mark.parametrize(
    ("path", "boxes", "told"),
    [
        ("batkube/emulated/KIT_0_jobs.csv", 28, "mean wait 48 min 4 s  ·  11 not drawn: their machines are unknown"),
        ("medium_late/easy", 1311, "801 jobs on 32 machines  ·  makespan 4 h 28 min  ·  mean wait 9.516 s"),
    ],
)
def test_published_runs_are_drawn_as_far_as_they_tell(shared_data: Path, path: str, boxes: int, told: str) -> None:
    figure = draw_gantt(Results(shared_data / path))

    assert len(figure.axes[0].collections[0].get_paths()) == boxes
    assert told in figure.texts[1].get_text()


class Reading(HTMLParser):
    """Collects the hover texts and table cells of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[str] = []
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.path.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.path.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.path and data.strip():
            self.found.append(("/".join(self.path[-2:]), data))


def test_a_page_is_self_contained_and_tells_of_each_box(small: Results, tmp_path: Path) -> None:
    save_gantt(small, tmp_path / "x.html", title="<b> & co")

    page = (tmp_path / "x.html").read_text()
    reading = Reading()
    reading.feed(page)
    assert reading.path == []
    hovers = [text for place, text in reading.found if place == "rect/title"]
    assert len(hovers) == 4
    assert hovers[0].splitlines() == [
        "job 1 (w0)",
        "user ada",
        "profile p",
        "submitted at 0 s",
        "waited 0 s, ran 1 min 40 s",
        "from 0 s to 1 min 40 s",
        "on machines 0-3",
        "COMPLETED_SUCCESSFULLY",
    ]
    assert ("head/title", "<b> & co") in reading.found
    assert ("tr/td", "160.00") in reading.found
    assert not re.search(r"""(src|href)=["']?http""", page)


def test_the_hover_rectangles_lie_on_the_boxes(small: Results) -> None:
    from batkube.outputs.gantt.figure import box_outlines_pt, build
    from batkube.outputs.gantt.model import gantt_model_of

    picture = gantt_model_of(small, title=None, color_by="job", window=None)
    figure = build(picture)
    figure.set_dpi(72)
    height_pt = figure.get_figheight() * 72

    outlines = box_outlines_pt(picture)

    to_page = figure.axes[0].transData
    corners = to_page.transform(np.stack((picture.boxes.left, picture.boxes.top), axis=1))
    np.testing.assert_allclose(outlines[:, 0], corners[:, 0])
    np.testing.assert_allclose(outlines[:, 1], height_pt - corners[:, 1])


def test_a_page_of_thousands_of_jobs_has_no_hover_texts(crowded: Results, tmp_path: Path) -> None:
    save_gantt(crowded, tmp_path / "x.html")

    page = (tmp_path / "x.html").read_text()
    assert len(page) < 3_000_000
    assert 'class="hover"' not in page
    assert "<td>6,000</td>" in page


def test_colours_stay_with_users_and_the_rest_share_grey(make_run: MakeRun) -> None:
    rows = [(str(job), 0, 0, 1, "0", {"user": f"u{job % 20}"}) for job in range(100)]
    jobs = make_run([*rows, *((f"x{job}", 0, 0, 1, "0", {"user": "u2"}) for job in range(9))]).jobs

    colouring = colour_jobs(jobs, "user")

    by_user = dict(zip(jobs["user"], colouring.fills, strict=True))
    assert len(set(by_user.values())) == len(FILLS) + 1
    assert by_user["u2"] != OTHERS_FILL
    assert colouring.legend[-1].label == "12 other users"
    assert [entry.label for entry in colouring.legend[:3]] == ["u0", "u1", "u2"]


def test_a_jobs_colour_depends_on_its_id_alone(make_run: MakeRun) -> None:
    first = make_run([("7", 0, 0, 1, "0"), ("x", 0, 0, 1, "0")]).jobs
    second = make_run([("x", 0, 0, 1, "0"), ("6", 0, 0, 1, "0"), ("7", 0, 0, 1, "0")], name="b").jobs

    assert colour_jobs(first, "job").fills == [colour_jobs(second, "job").fills[number] for number in (2, 0)]


def test_states_have_their_own_colours(small: Results) -> None:
    colouring = colour_jobs(small.jobs, "state")

    assert colouring.fills[1] == STATES["COMPLETED_KILLED"].fill
    assert [entry.label for entry in colouring.legend] == ["succeeded", "killed"]


@pytest.mark.parametrize(
    ("end_s", "unit", "labels"),
    [
        (10, "s", ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]),
        (0.5, "s", ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        (2210, "min", ["0", "5", "10", "15", "20", "25", "30", "35"]),
        (32554, "h", ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
        (86400 * 30, "d", ["0", "5", "10", "15", "20", "25", "30"]),
        (86400 * 1268, "d", ["0", "200", "400", "600", "800", "1000", "1200"]),
    ],
)
def test_time_is_told_in_the_unit_a_person_would_use(end_s: float, unit: str, labels: list[str]) -> None:
    axis = time_axis(0, end_s)

    assert axis.unit == unit
    assert list(axis.labels) == labels


@given(st.floats(0, 1e8), st.floats(1e-3, 1e9))
def test_a_time_axis_always_has_a_few_ticks_inside(start: float, length: float) -> None:
    axis = time_axis(start, start + length)

    assert len(axis.ticks_s) <= 12
    slack = (start + length) * 1e-6 + length * 1e-6
    assert all(start - slack <= tick <= start + length + slack for tick in axis.ticks_s)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9)), min_size=1, max_size=30, unique_by=lambda step: step[0])
)
def test_averaging_a_curve_keeps_its_area(steps: list[tuple[int, int]]) -> None:
    steps.sort()
    curve = StepFunction(np.array([time for time, _ in steps], float), np.array([value for _, value in steps], float))
    fine = np.linspace(0, 101, 102)

    averaged = curve.averaged(np.linspace(0, 101, 8))

    area = (curve.at(fine[:-1]) * np.diff(fine)).sum()
    assert (averaged.values[:-1] * np.diff(averaged.times)).sum() == pytest.approx(area)


def test_rejected_jobs_do_not_queue_for_ever(make_run: MakeRun) -> None:
    jobs = make_run([("1", 0, 5, 9, "0"), ("2", 1, None, None, "", {"final_state": "REJECTED"})]).jobs

    assert queue_steps(jobs).at(np.array([0.0, 4.0, 5.0, 9.0])).tolist() == [1, 1, 0, 0]


def test_the_command_line_draws_a_window_by_user(small: Results, tmp_path: Path) -> None:
    gantt(small.path, tmp_path / "x.png", start="1m", end="2m30s", by=ColourBy.USER, title="T")

    assert len(colours(tmp_path / "x.png")) >= 4


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("x.gif", {}, r"end the name in \.svg, \.pdf, \.pgf, \.png or \.html"),
        ("nowhere/x.svg", {}, "does not exist"),
        (".svg/x.svg", {}, "does not exist"),
        ("x.svg", {"start": "5x"}, "--from: '5x' is not a duration"),
        ("x.svg", {"start": "2m", "end": "1m"}, "is not a valid time range"),
        ("x.svg", {"start": "1h", "end": "2h"}, "nothing runs between 1 h and 2 h"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    small: Results, tmp_path: Path, target: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        gantt(small.path, tmp_path / target, **options)
    assert not (tmp_path / target).exists()


def test_a_target_that_cannot_be_written_is_refused(small: Results, tmp_path: Path) -> None:
    (tmp_path / "x.svg").mkdir()

    with pytest.raises(InputError, match="is a folder"):
        save_gantt(small, tmp_path / "x.svg")


def test_an_unknown_colouring_is_refused(small: Results) -> None:
    with pytest.raises(InputError, match="'size' is not one of job, user"):
        draw_gantt(small, color_by="size")
