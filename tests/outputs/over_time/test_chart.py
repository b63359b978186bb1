"""Charts over time: what they show, against evalys and by hand, and what they are written as."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import batkube
from batkube.cli.app import build_app
from batkube.kernel.errors import InputError
from batkube.outputs.gantt.adjacent_colours import distinct_fills
from batkube.outputs.gantt.chart import draw_gantt
from batkube.outputs.gantt.lanes import Boxes
from batkube.outputs.gantt.machine_labels import row_names
from batkube.outputs.gantt.model import gantt_model_of
from batkube.outputs.over_time.chart import draw_chart, save_chart
from batkube.outputs.over_time.chart_kinds import ChartKind
from batkube.outputs.over_time.curves import panels_of
from batkube.outputs.results import Results


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Results]:
    """The same jobs under two policies."""
    folder = tmp_path_factory.mktemp("runs")
    workload = {"generate": "lublin", "jobs": 120, "machines": 16}
    for policy in ("fcfs", "easy"):
        batkube.run(
            workload=workload,
            platform="16x1",
            scheduler=f"policy:{policy}",
            seed=3,
            out=folder / policy,
            events=[{"at": 1000, "fail": "node-3", "for": "10h"}],
        )
    return [Results(folder / policy) for policy in ("fcfs", "easy")]


def curve(
    results: Results, kind: ChartKind, panel: int = 0
) -> batkube.outputs.measures.occupancy.step_functions.StepFunction:
    return panels_of(kind, [results])[panel].curves[0].steps


@pytest.mark.filterwarnings("ignore")  # evalys' own, about pandas
def test_the_queue_is_that_of_evalys(tmp_path: Path) -> None:
    jobset = pytest.importorskip("evalys.jobset")
    workload = {"generate": "lublin", "jobs": 150, "machines": 16}
    run = batkube.run(workload=workload, platform="16x1", seed=5, out=tmp_path / "run")
    queue = jobset.JobSet.from_csv(str(tmp_path / "run" / "jobs.csv"), resource_bounds=(0, 15)).queue

    asked = curve(Results(run.path), ChartKind.QUEUE, 1)

    times = queue.index.to_numpy(dtype=float)
    moments = (times[:-1] + times[1:]) / 2
    assert len(moments) > 100
    assert asked.at(moments).tolist() == pytest.approx(queue["load"].to_numpy()[:-1].tolist())


def test_what_is_free_is_neither_busy_nor_away(runs: list[Results]) -> None:
    for results in runs:
        states = results.machine_states
        times = states["time"].to_numpy()
        moments = (times[:-1] + times[1:]) / 2

        assert curve(results, ChartKind.FREE).at(moments).tolist() == states["nb_idle"].tolist()[:-1]


def test_states_add_up_to_all_machines(runs: list[Results]) -> None:
    (panel,) = panels_of(ChartKind.STATES, runs[:1])

    labels = [one.label for one in panel.curves]
    assert labels == ["computing", "idle", "not available"]
    moments = np.linspace(0, 20_000, 50)
    assert np.sum([one.steps.at(moments) for one in panel.curves], axis=0).tolist() == [16] * 50


@pytest.mark.parametrize("kind", list(ChartKind))
@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_charts_are_as_wide_as_asked_for_and_the_same_bytes_twice(
    kind: ChartKind, ending: str, runs: list[Results], tmp_path: Path
) -> None:
    words = ["chart", kind.value, *(str(run.path) for run in runs), "--width", "column"]
    for name in ("a", "b"):
        done = CliRunner().invoke(build_app(), [*words, "-o", str(tmp_path / f"{name}{ending}")])
        assert done.exit_code == 0, done.output

    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()
    assert draw_chart(kind, runs, width_in=3.5).get_size_inches()[0] == 3.5


def test_two_runs_in_one_chart_differ_in_more_than_their_colours(runs: list[Results]) -> None:
    lines = draw_chart(ChartKind.QUEUE, runs).axes[0].get_lines()

    assert [line.get_label() for line in lines] == ["fcfs", "easy"]
    assert len({str(line.get_linestyle()) + str(line._unscaled_dash_pattern) for line in lines}) == 2


def test_bad_arguments_are_errors(runs: list[Results], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a picture format"):
        save_chart(ChartKind.QUEUE, runs, tmp_path / "x.doc")
    with pytest.raises(InputError, match="is not a valid time range"):
        draw_chart(ChartKind.QUEUE, runs, window=(50.0, 10.0))
    with pytest.raises(InputError, match=r"has no machine_states\.csv"):
        draw_chart(ChartKind.STATES, [Results(lone_jobs(runs[0], tmp_path))])


def lone_jobs(results: Results, folder: Path) -> Path:
    path = folder / "alone" / "jobs.csv"
    path.parent.mkdir()
    path.write_bytes((results.path / "jobs.csv").read_bytes())
    return path


def test_a_comparison_shows_which_jobs_start_earlier_later_or_at_the_same_time(runs: list[Results]) -> None:
    fcfs, easy = runs
    picture = gantt_model_of(easy, title=None, color_by="job", window=None, against=fcfs)

    shifts = (easy.jobs.set_index("job_id")["starting_time"] - fcfs.jobs.set_index("job_id")["starting_time"]).round(6)
    labels = {
        entry.label.partition(" ")[2].partition(",")[0]: int(entry.label.split()[0])
        for entry in picture.colouring.legend
    }
    counts = {"earlier": (shifts < 0).sum(), "at the same time": (shifts == 0).sum(), "later": (shifts > 0).sum()}
    assert labels == {name: count for name, count in counts.items() if count}
    assert counts["earlier"] > 0
    assert picture.title == "easy against fcfs"
    # In grey: at least a tenth of the way from black to white apart.
    greys = sorted(_grey(entry.fill) for entry in picture.colouring.legend)
    assert min(np.diff(greys), default=1.0) > 0.1
    assert draw_gantt(easy, against=fcfs).axes


def _grey(fill: str) -> float:
    red, green, blue = (int(fill[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_runs_without_a_common_job_have_no_difference(runs: list[Results], tmp_path: Path) -> None:
    other = batkube.run(workload={"generate": "burst", "jobs": 2}, platform="2x1", out=tmp_path / "other")
    words = ["gantt", str(runs[0].path), "--against", str(other.path), "-o", str(tmp_path / "x.svg")]
    jobs = other.jobs_path.read_text().replace("w0,", "elsewhere,")
    other.jobs_path.write_text(jobs)

    done = CliRunner().invoke(build_app(), words)

    assert isinstance(done.exception, InputError)
    assert "has no job in common" in str(done.exception)


def test_a_thousand_machines_are_named_by_group() -> None:
    names = [*(f"cpu-{n}" for n in range(600)), *(f"gpu-{n}" for n in range(300)), *(f"big-{n}" for n in range(100))]

    rows = row_names(names, 7.6)

    assert [name for _, name in rows.names] == ["cpu-0…599", "gpu-0…299", "big-0…99"]
    assert [place for place, _ in rows.names] == [300, 750, 950]
    assert rows.borders == [600, 900]


def test_machines_of_one_group_are_named_now_and_then_and_few_ones_all() -> None:
    many = row_names([f"node-{n}" for n in range(1000)], 7.6)
    few = row_names(["a-0", "b-0", "c-7"], 1.4)

    assert [name for _, name in many.names][:3] == ["node-0", "node-50", "node-100"]
    assert not many.borders
    assert few.names_every_machine
    assert [name for _, name in few.names] == ["a-0", "b-0", "c-7"]


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), min_size=2, max_size=60, unique=True))
def test_boxes_that_touch_have_different_colours(cells: list[tuple[int, int]]) -> None:
    machine, time = np.array(cells).T
    numbers = np.arange(len(cells))
    boxes = Boxes(
        job=numbers,
        left=time * 1.0,
        right=time + 1.0,
        top=machine * 1.0,
        bottom=machine + 1.0,
        lost=np.zeros(len(cells), bool),
    )

    fills = distinct_fills(["#77AADD"] * len(cells), boxes, 20, 0.0, 20.0)

    place = {cell: number for number, cell in enumerate(cells)}
    for (row, column), number in place.items():
        for beside in ((row + 1, column), (row, column + 1)):
            if beside in place:
                assert fills[number] != fills[place[beside]]
