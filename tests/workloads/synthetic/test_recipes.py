"""Workloads from recipes: generated, or resampled from a trace."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration
from batkube.kernel.streams import Streams
from batkube.workloads.model import Workload
from batkube.workloads.synthetic.generators import lublin
from batkube.workloads.synthetic.recipes import RecipeSource, parse_recipe
from batkube.workloads.transformations.resampling import (
    block_bootstrap,
    disjoint_job_window,
    disjoint_time_window,
    job_window,
    time_window,
)
from batkube.workloads.writer import write_workload

_FILE = RecipeSource("scenario.yaml")
_HOUR = Duration(3600 * NANOSECONDS_PER_SECOND)
_TRACE = lublin(400, 64, seed=7)
#: A job every minute for two days.
_BUSY = parse_recipe({"generate": "spaced", "jobs": 2880, "interval": "1m"}, _FILE).make(0)


def _maker(**options: object) -> Callable[[int], Workload]:
    return parse_recipe({key.replace("_", "-"): value for key, value in options.items()}, _FILE).make


def _shape(workload: Workload) -> list[tuple[int, int, str]]:
    return [(job.submit, job.size, job.profile.name) for job in workload.jobs]


def test_a_recipe_uses_the_seed_of_the_run_unless_it_has_its_own() -> None:
    default, explicit, own = (
        _maker(generate="lublin", jobs=20),
        _maker(generate="lublin", jobs=20, seed="${seed}"),
        _maker(generate="lublin", jobs=20, seed=5),
    )

    assert _shape(default(1)) == _shape(explicit(1)) == _shape(lublin(20, 128, seed=1))
    assert _shape(default(1)) != _shape(default(2))
    assert _shape(own(1)) == _shape(own(2)) == _shape(lublin(20, 128, seed=5))


def test_a_recipe_can_be_pickled() -> None:
    recipe = parse_recipe({"generate": "burst", "jobs": 3}, _FILE)

    assert _shape(pickle.loads(pickle.dumps(recipe)).make(4)) == _shape(recipe.make(4))


def test_a_resampled_trace_is_found_relative_to_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_workload(_TRACE, path)

    sample = [parse_recipe({"resample": "trace.json", "window": "50 jobs"}, _FILE, tmp_path).make(n) for n in (1, 2)]

    assert [len(workload.jobs) for workload in sample] == [50, 50]
    assert sample[0].jobs[0].submit == 0
    assert _shape(sample[0]) != _shape(sample[1])


@given(seed=st.integers(0, 10_000), hours=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_a_window_is_a_contiguous_part_of_the_trace(seed: int, hours: int) -> None:
    sample = time_window(_TRACE, Duration(hours * _HOUR), Streams(seed).named("w"))

    by_name = {job.name: job for job in _TRACE.jobs}
    shifts = {by_name[job.name].submit - job.submit for job in sample.jobs}
    assert len(shifts) == 1
    begin = shifts.pop()
    inside = [job.name for job in _TRACE.jobs if begin <= job.submit < begin + hours * _HOUR]
    assert [job.name for job in sample.jobs] == inside


@given(seed=st.integers(0, 10_000), hours=st.integers(1, 6), blocks=st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_blocks_keep_the_gaps_within_a_block_and_job_names_are_unique(seed: int, hours: int, blocks: int) -> None:
    block = Duration(hours * _HOUR)
    sample = block_bootstrap(_BUSY, block, Duration(blocks * block), Streams(seed).named("w"))

    first = _BUSY.jobs[0].submit
    by_name = {job.name: job for job in _BUSY.jobs}
    for job in sample.jobs:
        place, _, name = job.name.partition(".")
        assert job.submit // block == int(place) - 1
        assert job.submit % block == (by_name[name].submit - first) % block
    assert len({job.name for job in sample.jobs}) == len(sample.jobs)
    assert [job.submit for job in sample.jobs] == sorted(job.submit for job in sample.jobs)


def test_windows_of_jobs_reach_every_part_of_the_trace() -> None:
    rng = Streams(0).named("w")

    firsts = [int(job_window(_TRACE, 100, rng).jobs[0].name) for _ in range(600)]

    assert min(firsts) < 20
    assert max(firsts) > 280
    assert 130 < sum(firsts) / len(firsts) < 171  # the mean of 1 … 301 is 151, its standard error 3.5


def test_disjoint_windows_cover_the_trace_before_one_repeats() -> None:
    by_jobs = [disjoint_job_window(_TRACE, 50, seed) for seed in range(100, 108)]
    in_time = [disjoint_time_window(_BUSY, Duration(4 * _HOUR), seed) for seed in range(11)]

    assert sorted(int(job.name) for window in by_jobs for job in window.jobs) == list(range(1, 401))
    assert [int(window.jobs[0].name) for window in by_jobs] != list(range(1, 401, 50))
    names = [job.name for window in in_time for job in window.jobs]
    assert len(names) == len(set(names)) == 11 * 240  # the last four hours of the two days are not a whole window
    assert all(window.jobs[0].submit == 0 for window in [*by_jobs, *in_time])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "workload: is not a workload"),
        ({"generate": "lublin", "resample": "x"}, "needs either 'generate' or 'resample'"),
        ({"generate": "lubin"}, "workload.generate: 'lubin' is not a generator"),
        ({"generate": "lublin", "job": 5}, "did you mean 'jobs'?"),
        ({"generate": "lublin", "jobs": 0}, "workload.jobs: 0 is not a whole number of at least 1"),
        ({"generate": "lublin", "seed": "x"}, "workload.seed: 'x' is not a whole number"),
        ({"generate": "burst", "run-time": "long"}, "workload.run-time: 'long' is not a distribution"),
        ({"generate": "poisson"}, "poisson needs exactly one of"),
        ({"resample": "t.swf"}, "needs exactly one of"),
        ({"resample": "t.swf", "window": "0s"}, "workload.window: is 0s, but must be longer than 0"),
        ({"resample": "t.swf", "blocks": "1d"}, "must be used together"),
        ({"resample": "t.swf", "window": "1d", "rate": "-1"}, "workload.rate: must be larger than 0"),
        ({"resample": 5, "window": "1d"}, "is not the path of a trace"),
        ({"resample": "t.swf", "window": "1d", "overlap": "no way"}, "workload.overlap: 'no way' is neither true nor"),
        (
            {"resample": "t.swf", "blocks": "1d", "length": "7d", "overlap": False},
            "workload.overlap: applies only to windows",
        ),
    ],
)
def test_an_invalid_recipe_is_rejected_with_its_place(options: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as error:
        parse_recipe(options, _FILE)

    assert problem in str(error.value)
    assert str(error.value).startswith("scenario.yaml: ")


@pytest.mark.parametrize(
    ("draw", "problem"),
    [
        (lambda rng: time_window(_TRACE, Duration(10**6 * _HOUR), rng), "the window is"),
        (lambda rng: job_window(_TRACE, 401, rng), "has 400 jobs, fewer than the window of 401"),
        (lambda _: disjoint_job_window(_TRACE, 201, 0), "has fewer than two disjoint windows of 201 jobs"),
        (
            lambda _: disjoint_time_window(_BUSY, Duration(25 * _HOUR), 0),
            "has fewer than two disjoint windows of 1 d 1 h",
        ),
        (lambda rng: block_bootstrap(_TRACE, Duration(10**6 * _HOUR), _HOUR, rng), "less than two blocks"),
        (lambda rng: block_bootstrap(_TRACE, _HOUR, Duration(1), rng), "is less than a block"),
    ],
)
def test_windows_and_blocks_larger_than_the_trace_are_rejected(
    draw: Callable[[object], Workload], problem: str
) -> None:
    with pytest.raises(InputError) as error:
        draw(Streams(0).named("w"))

    assert problem in str(error.value)
