"""A Gantt chart compared with a reference run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import batkube
from batkube.cli.app import build_app
from batkube.kernel.errors import InputError
from batkube.outputs.gantt.chart import draw_gantt
from batkube.outputs.gantt.model import gantt_model_of
from batkube.outputs.results import Results


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
    # In grey, fills differ by at least a tenth of the range from black to white.
    greys = sorted(_grey(entry.fill) for entry in picture.colouring.legend)
    assert min(np.diff(greys), default=1.0) > 0.1
    assert draw_gantt(easy, against=fcfs).axes


def _grey(fill: str) -> float:
    red, green, blue = (int(fill[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_reference_run_without_common_jobs_is_rejected(runs: list[Results], tmp_path: Path) -> None:
    other = batkube.run(workload={"generate": "burst", "jobs": 2}, platform="2x1", out=tmp_path / "other")
    arguments = ["gantt", str(runs[0].path), "--against", str(other.path), "-o", str(tmp_path / "x.svg")]
    jobs = other.jobs_path.read_text().replace("w0,", "elsewhere,")
    other.jobs_path.write_text(jobs)

    result = CliRunner().invoke(build_app(), arguments)

    assert isinstance(result.exception, InputError)
    assert "has no job in common" in str(result.exception)
