"""`--walltime-fill`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_fields
from typer.testing import CliRunner

from batkube.cli.commands.workload import app
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant, seconds
from batkube.workloads.model import Delay, Job, Parallel, Workload
from batkube.workloads.reader import read_workload
from batkube.workloads.run_times import run_time
from batkube.workloads.transformations.changes import changes_between
from batkube.workloads.transformations.conversions import RUN_TIME_UNKNOWN
from batkube.workloads.transformations.walltime_fill import NOTHING_TO_FILL, RAISED, fill_walltimes

#: Three jobs in four have no walltime.
JOBS = [
    Job(
        workload="w0",
        name=str(number),
        submit=Instant(seconds(number)),
        size=1,
        profile=Delay(name=f"d{number}", duration=seconds(7 * number)),
        walltime=seconds(5000) if number % 4 == 0 else None,
    )
    for number in range(400)
]
TRACE = Workload(name="w0", source="t", jobs=JOBS)
MODELS = ("factor:1.5", "noisy:4", "uniform:1,4000", "tsafrir", "tsafrir:5h")


@pytest.mark.parametrize("model", MODELS)
def test_only_missing_walltimes_are_filled_and_none_ends_its_job(model: str) -> None:
    filled = fill_walltimes(TRACE, model, seed=3)

    assert changes_between(TRACE, filled) == {"walltimes added": 300}
    assert all(job.walltime is not None and job.walltime > (run_time(job.profile) or 0) for job in filled.jobs)


@pytest.mark.parametrize("model", MODELS[1:])
def test_a_seed_gives_the_same_walltimes_and_another_seed_others(model: str) -> None:
    first = fill_walltimes(TRACE, model, seed=3).jobs

    assert fill_walltimes(TRACE, model, seed=3).jobs == first
    assert fill_walltimes(TRACE, model, seed=4).jobs != first


def test_a_factor_multiplies_run_times_exactly() -> None:
    filled = fill_walltimes(TRACE, "factor:1.5", seed=0)

    assert [job.walltime for job in filled.jobs[:4]] == [seconds(5000), seconds(10.5), seconds(21), seconds(31.5)]


def test_noisy_estimates_are_uniform_up_to_the_factor() -> None:
    filled = fill_walltimes(TRACE, "noisy:4", seed=1)
    ratios = [
        (job.walltime or 0) / (run_time(job.profile) or 1)
        for old, job in zip(TRACE.jobs[100:], filled.jobs[100:], strict=True)
        if old.walltime is None
    ]

    assert all(1 < ratio < 5.01 for ratio in ratios)
    assert sum(ratios) / len(ratios) == pytest.approx(3, abs=0.3)


def test_values_of_a_distribution_that_would_end_the_job_are_raised_with_a_note() -> None:
    filled = fill_walltimes(TRACE, "constant:700", seed=0)

    # 7 × 100 s is not below 700 s: jobs from 100 on, without every fourth.
    assert (RAISED, 225) in filled.notes
    assert filled.jobs[101].walltime == seconds(708)


def test_tsafrirs_estimates_are_few_and_round_and_their_longest_is_as_requested() -> None:
    filled = fill_walltimes(TRACE, "tsafrir:5h", seed=1)
    values = [job.walltime or 0 for old, job in zip(TRACE.jobs, filled.jobs, strict=True) if old.walltime is None]

    assert len(set(values)) <= 25
    assert max(values) == seconds(5 * 3600)
    assert values.count(seconds(5 * 3600)) == max(values.count(value) for value in values)


def test_the_longest_recorded_walltime_is_the_longest_estimate() -> None:
    jobs = [replace_fields(job, walltime=seconds(30_000)) if job.walltime else job for job in JOBS]
    filled = fill_walltimes(replace(TRACE, jobs=jobs), "tsafrir", seed=1)

    assert max(
        job.walltime or 0 for old, job in zip(jobs, filled.jobs, strict=True) if old.walltime is None
    ) == seconds(30_000)


def test_jobs_without_fixed_run_time_are_unchanged_and_noted() -> None:
    jobs = [replace_fields(JOBS[1], profile=Parallel(name="p", cpu_flops=(1.0,), com_bytes=())), JOBS[2]]
    filled = fill_walltimes(replace(TRACE, jobs=jobs), "factor:2", seed=0)

    assert [job.walltime for job in filled.jobs] == [None, seconds(28)]
    assert filled.notes == ((RUN_TIME_UNKNOWN, 1),)


def test_a_workload_in_which_nothing_is_missing_is_noted() -> None:
    complete = fill_walltimes(TRACE, "factor:2", seed=0)

    assert fill_walltimes(complete, "tsafrir", seed=0).notes == ((NOTHING_TO_FILL, 1),)


@pytest.mark.parametrize(
    "model",
    [
        "",
        "factor",
        "factor:1",
        "factor:0",
        "factor:1/0",
        "factor:1e400",
        "noisy:-1",
        "noisy:x",
        "tsafrir:1",
        "tsafrir:45m",
        "tsafrir:x",
        "weib:1",
        "uniform:1",
        "constant:nan",
    ],
)
def test_a_model_that_cannot_be_used_is_one_error(model: str) -> None:
    with pytest.raises(InputError):
        fill_walltimes(TRACE, model, seed=0)


def test_the_command_fills_with_its_seed_and_records_the_model(tmp_path: Path) -> None:
    source, target = tmp_path / "t.swf", tmp_path / "filled.swf"
    lines = [f"{n} {n} -1 {60 * n} 1 -1 -1 1 {9000 if n % 3 else -1} -1 1 1 1 -1 -1 -1 -1 -1\n" for n in range(1, 31)]
    source.write_text("; MaxProcs: 4\n" + "".join(lines))
    words = ["convert", str(source), "-o", str(target), "--walltime-fill", "tsafrir", "--seed", "5"]
    CliRunner().invoke(app, words, catch_exceptions=False)
    workload = read_workload(target)
    (step,) = workload.header.history

    assert workload.jobs == fill_walltimes(read_workload(source), "tsafrir", seed=5).jobs
    assert step.options == ("--walltime-fill", "tsafrir", "--seed", "5")
    assert step.changes == {"walltimes added": 10}


def test_a_seed_without_a_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text("1 0 -1 5 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1\n")
    words = ["convert", str(tmp_path / "t.swf"), "-o", str(tmp_path / "o.swf"), "--seed", "5"]

    with pytest.raises(InputError, match="requires --walltime-fill"):
        CliRunner().invoke(app, words, catch_exceptions=False)
