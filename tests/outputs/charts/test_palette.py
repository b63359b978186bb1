"""Fills and hatches of jobs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from batkube.outputs.charts.palette import FILLS, OTHERS_FILL, STATES, colour_jobs, lightness
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun


def test_users_with_most_jobs_have_a_colour_each_and_the_others_share_grey(make_run: MakeRun) -> None:
    rows = [(str(job), 0, 0, 1, "0", {"user": f"u{job % 20}"}) for job in range(100)]
    jobs = make_run([*rows, *((f"x{job}", 0, 0, 1, "0", {"user": "u2"}) for job in range(9))]).jobs

    colouring = colour_jobs(jobs, "user")

    by_user = dict(zip(jobs["user"], colouring.fills, strict=True))
    assert len(set(by_user.values())) == len(FILLS) + 1
    assert by_user["u2"] != OTHERS_FILL
    assert colouring.legend[-1].label == "12 other users"
    assert [entry.label for entry in colouring.legend[:3]] == ["u0", "u1", "u2"]


def test_the_colour_of_a_job_depends_only_on_its_id(make_run: MakeRun) -> None:
    first = make_run([("7", 0, 0, 1, "0"), ("x", 0, 0, 1, "0")]).jobs
    second = make_run([("x", 0, 0, 1, "0"), ("6", 0, 0, 1, "0"), ("7", 0, 0, 1, "0")], name="b").jobs

    assert colour_jobs(first, "job").fills == [colour_jobs(second, "job").fills[number] for number in (2, 0)]


def test_states_have_fixed_colours(small: Results) -> None:
    colouring = colour_jobs(small.jobs, "state")

    assert colouring.fills[1] == STATES["COMPLETED_KILLED"].fill
    assert [entry.label for entry in colouring.legend] == ["succeeded", "killed"]


def test_users_are_distinguishable_without_colours(run: Results) -> None:
    """Any two entries of the legend differ in their hatch, or in lightness by a tenth."""
    jobs = run.jobs

    legend = colour_jobs(jobs, "user", for_print=True).legend

    assert [entry.label for entry in legend][-1] == "4 other users"
    assert len(legend) == len(FILLS) + 1
    for one, other in itertools.combinations(legend, 2):
        assert one.hatch != other.hatch or abs(lightness(one.fill) - lightness(other.fill)) > 0.1, (one, other)
    assert not any(colour_jobs(jobs, "user").hatches)
