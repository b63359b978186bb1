"""Accounting lists of a real Slurm: the jobs read are the jobs that were submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

import batkube
from batkube.kernel.errors import InputError
from batkube.workloads.formats.traces.sacct import FAILED, HETEROGENEOUS, NEVER_STARTED, SUSPENDED
from batkube.workloads.model import Job, Workload
from batkube.workloads.reader import read_workload
from batkube.workloads.walltime_notes import WALLTIME_OVERRUN

RECORDED = Path(__file__).parent / "slurm"
MIB = 1 << 20
SECOND = 10**9


def read_recorded(name: str) -> tuple[Workload, dict[str, Job]]:
    workload = read_workload(RECORDED / f"{name}.txt")
    return workload, {job.name: job for job in workload.jobs}


def properties_of(job: Job) -> tuple[object, ...]:
    """Return the properties of a job without its times."""
    return job.name, job.size, job.requests, job.walltime, job.user, job.queue


def test_jobs_have_the_recorded_resources_and_times() -> None:
    workload, jobs = read_recorded("documented")

    assert len(jobs) == 51
    assert dict(workload.notes) == {NEVER_STARTED: 4, FAILED: 7, WALLTIME_OVERRUN: 1, HETEROGENEOUS: 2}
    # sbatch -N2 -n8: 4,000 MiB, six cores on one node and two on the other, of which sacct prints only the sum.
    assert (jobs["3"].size, dict(jobs["3"].requests)) == (2, {"cpu": 4000, "memory": 2000 * MIB})
    # --gres=gpu:1 on two nodes, which gave one of each type.
    assert (jobs["11"].size, dict(jobs["11"].requests)["nvidia.com/gpu"]) == (2, 1)
    # --exclusive, with one task.
    assert dict(jobs["22"].requests) == {"cpu": 8000, "memory": 4000 * MIB, "nvidia.com/gpu": 3}
    # -t 1, killed some seconds later.
    assert (jobs["5"].walltime, jobs["5"].profile.name) == (60 * SECOND, "delay71")
    assert (jobs["17"].walltime, jobs["16"].queue, jobs["36"].size) == (None, "urgent", 3)
    assert [jobs[f"35_{n}"].profile.name for n in (1, 2, 12)] == ["delay3", "delay5", "delay24"]
    assert jobs["3"].submit == 0
    assert jobs["58"].submit == 334 * SECOND


def test_times_in_seconds_give_the_same_jobs() -> None:
    assert read_recorded("seconds")[0].jobs == read_recorded("documented")[0].jobs


def test_each_execution_of_a_job_is_a_job_and_steps_are_ignored() -> None:
    workload, jobs = read_recorded("duplicates")

    assert dict(workload.notes)[SUSPENDED] == 1
    # Lost with its node, and requeued by Slurm when the failure was detected.
    assert [jobs[name].profile.name for name in ("33", "33-2")] == ["delay6", "delay16"]
    assert jobs["33-2"].submit - jobs["33"].submit == 6 * SECOND
    # Preempted after two seconds, and later run to its end.
    assert [jobs[name].profile.name for name in ("30", "30-2")] == ["delay2", "delay30"]
    # Requeued by hand while it ran, and on hold from then on.
    assert jobs["56"].profile.name == "delay4"
    assert not [name for name in jobs if "." in name]
    # Its name contains the delimiter: "a|b c".
    assert properties_of(jobs["12"]) == properties_of(read_recorded("documented")[1]["12"])


@pytest.mark.parametrize("name", ["all", "closed"])
def test_other_columns_and_another_delimiter_give_the_same_jobs(name: str) -> None:
    _, documented = read_recorded("documented")
    _, jobs = read_recorded(name)

    # Job 26 missed its deadline before it started.
    assert {"3", "4", "5", "7", "11", "19", "20+0", "20+1"} == jobs.keys() - {"12"}
    for job in jobs.values():
        assert properties_of(job) == properties_of(documented[job.name])
    # Suspended for 6 of 21 s, which only Elapsed excludes.
    assert documented["19"].profile.name == "delay21"
    assert jobs["19"].profile.name == {"all": "delay15", "closed": "delay21"}[name]


def test_a_row_with_several_free_texts_and_a_delimiter_in_them_is_rejected(tmp_path: Path) -> None:
    """With `-o ALL`, a name with a delimiter is in JobName and again in SubmitLine."""
    text = (RECORDED / "all.txt").read_text(encoding="utf-8").replace("|toolong|", "|too|long|")
    (tmp_path / "all.txt").write_text(text, encoding="utf-8")

    with pytest.raises(InputError) as error:
        read_workload(tmp_path / "all.txt")

    assert "line 4: has 110 fields, but the header has 109" in str(error.value)
    assert "list without AdminComment, Comment, " in str(error.value)


def test_memory_that_was_rounded_to_zero_is_rejected(tmp_path: Path) -> None:
    """`sacct --units=T` writes 500M in this form."""
    text = (RECORDED / "documented.txt").read_text(encoding="utf-8").replace("mem=500M", "mem=0.00T")
    (tmp_path / "jobs.txt").write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=r"mem is '0.00T', an amount rounded to 0\n  remedy: run sacct without"):
        read_workload(tmp_path / "jobs.txt")


def test_the_json_of_sacct_is_recognised_and_rejected(tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text('{\n  "meta": {\n    "plugin": {\n      "type": "openapi\\/dbv0.0.38"}}}')

    with pytest.raises(InputError, match=r"is output of sacct --json.*\n  remedy: write it with: sacct -a -X -P"):
        read_workload(tmp_path / "jobs.json")


def test_the_jobs_fit_on_the_nodes_that_they_ran_on(tmp_path: Path) -> None:
    """No node is over-allocated, and all jobs run as long as they did on the real cluster."""
    _, jobs = read_recorded("duplicates")

    run = batkube.run(
        workload=RECORDED / "duplicates.txt",
        platform="4x8,16000Mi,3",
        scheduler="policy:best-fit",
        out=tmp_path / "out",
    )

    assert len(run.jobs) == len(jobs)
    run_times = run.jobs.set_index("job_id")["execution_time"].to_dict()
    assert run_times.pop("5") == 60, "it is killed at its walltime here, and some seconds later by Slurm"
    assert run_times == {name: job.profile.duration / SECOND for name, job in jobs.items() if name != "5"}
