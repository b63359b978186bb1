"""Read Slurm's accounting as a workload."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import batkube
from batkube.cli.app import build_app
from batkube.kernel.errors import InputError
from batkube.workloads.formats.traces.sacct import FAILED, NEVER_STARTED, NOT_FINISHED
from batkube.workloads.reader import read_workload
from batkube.workloads.walltime_notes import WALLTIME_OVERRUN

HEADER = "JobID|JobName|User|Partition|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|AllocTRES|ExitCode"
LIST = f"""{HEADER}
17|a|ann|batch|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:10|2026-01-05T09:00:10|02:00:00|2|16|cpu=16,mem=64G,node=2|0:0
17.batch|batch|||COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:10|2026-01-05T09:00:10||1|8|cpu=8,mem=32G,node=1|0:0
18_3|b|bob|gpu|TIMEOUT|2026-01-05T07:59:00|2026-01-05T08:10:00|2026-01-06T08:10:00|1-00:00:00|1|4|cpu=4,gres/gpu=2,mem=1000M|0:0
18_[4-9]|b|bob|gpu|PENDING|2026-01-05T07:59:00|Unknown|Unknown|1-00:00:00|1|4||0:0
19|c|cyd|batch|CANCELLED by 1001|2026-01-05T08:05:00|None|2026-01-05T08:06:00|UNLIMITED|1|0||0:0
20|d|cyd|batch|CANCELLED by 1001|2026-01-05T08:05:00|2026-01-05T08:05:30|2026-01-05T08:06:00|UNLIMITED|1|1|cpu=1|0:0
21|e|cyd|batch|RUNNING|2026-01-05T08:05:00|2026-01-05T08:05:30|Unknown|01:00:00|1|1|cpu=1|0:0
"""


def write(folder: Path, text: str, name: str = "jobs.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_jobs_have_the_nodes_times_and_resources_of_slurm(tmp_path: Path) -> None:
    workload = read_workload(write(tmp_path, LIST))

    jobs = [(job.name, job.submit / 1e9, job.size, job.profile.name, job.user, job.queue) for job in workload.jobs]
    assert jobs == [
        ("18_3", 0, 1, "delay86400", "bob", "gpu"),
        ("17", 60, 2, "delay3600", "ann", "batch"),
        ("20", 360, 1, "delay30", "cyd", "batch"),
    ]
    first, second, third = workload.jobs
    assert dict(first.requests) == {"cpu": 4000, "memory": 1000 << 20, "nvidia.com/gpu": 2}
    assert dict(second.requests) == {"cpu": 8000, "memory": 32 << 30}
    assert (first.walltime, second.walltime, third.walltime) == (86400 * 10**9, 7200 * 10**9, None)
    assert dict(workload.notes) == {NEVER_STARTED: 2, WALLTIME_OVERRUN: 1, FAILED: 2, NOT_FINISHED: 1}


def test_a_list_runs_and_converts(tmp_path: Path) -> None:
    path = write(tmp_path, LIST, "accounting.csv")

    run = batkube.run(workload=path, platform="4x8,64Gi,2", out=tmp_path / "out")
    conversion = CliRunner().invoke(build_app(), ["workload", "convert", str(path), "-o", str(tmp_path / "w.json")])

    assert run.jobs.set_index("job_id")["execution_time"].to_dict() == {"18_3": 86400.0, "17": 3600.0, "20": 30.0}
    assert conversion.exit_code == 0, conversion.output
    assert [job.name for job in read_workload(tmp_path / "w.json").jobs] == ["18_3", "17", "20"]


def test_columns_of_older_slurm_versions_and_raw_seconds_are_read(tmp_path: Path) -> None:
    text = "Submit|JobID|ElapsedRaw|State|NNodes|NCPUS|ReqMem|TimelimitRaw\n"
    text += "1767600000|5|90|COMPLETED|2|8|2Gc|60\n1767600000|6|0|COMPLETED|1|1|500Mn|\n"
    text += "1767600001|5|10|NODE_FAIL|2|8|2Gc|60\n"

    jobs = read_workload(write(tmp_path, text)).jobs

    assert [(job.name, job.profile.name) for job in jobs] == [("5", "delay90"), ("6", "delay0"), ("5-2", "delay10")]
    assert dict(jobs[0].requests) == {"cpu": 4000, "memory": 8 << 30}
    assert dict(jobs[1].requests) == {"cpu": 1000, "memory": 500 << 20}
    assert jobs[0].walltime == 3600 * 10**9


def test_jobs_without_cores_need_whole_machines(tmp_path: Path) -> None:
    text = "JobID|Submit|Elapsed|NNodes\n1|2026-01-05T08:00:00|01:02.500|3\n"

    (job,) = read_workload(write(tmp_path, text)).jobs

    assert (job.size, job.requests, job.profile.name) == (3, (), "delay62.5")


def test_lists_without_seconds_use_start_and_end(tmp_path: Path) -> None:
    text = "JobID|Submit|Start|End|ReqNodes|Timelimit|Elapsed|User|JobName|\n"
    text += "8|2018-12-31T08:27|2018-12-31T08:27|2019-01-01T20:57|7|1-12:30|1-12:30|5c8e|b7ef\n"
    text += "9|2018-12-31T08:27|2018-12-31T08:30|2019-01-01T08:27|7|1-00:00|23:57|5c8e|b7ef\n"

    long, short = read_workload(write(tmp_path, text)).jobs

    assert (long.profile.name, short.profile.name) == ("delay131400", "delay86220")
    assert (long.walltime, short.walltime) == (131400 * 10**9, 86400 * 10**9)


def test_job_id_raw_replaces_a_missing_job_id(tmp_path: Path) -> None:
    text = "JobIDRaw|ElapsedRaw|Submit|NNodes\n123|600|2026-10-03T00:00:00|2\n123.batch|600|2026-10-03T00:00:00|1\n"

    (job,) = read_workload(write(tmp_path, text)).jobs

    assert (job.name, job.size) == ("123", 2)


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("JobID|Submit|State\n1|x|y\n", "line 1", "has no column ElapsedRaw or Elapsed or End"),
        ("JobID|Start|End\n1|x|y\n", "line 1", "has no column Submit"),
        (f"{HEADER}\n1|2\n", "line 2", "has 2 fields, but the header has 13"),
        (LIST.replace("02:00:00", "two hours"), "line 2", "Timelimit is 'two hours'"),
        (
            LIST.replace("2026-01-05T08:00:10|2026-01-05T09:00:10|02", "yesterday|now|02"),
            "line 2",
            "Start is 'yesterday'",
        ),
        (LIST.replace("2026-01-05T09:00:10|02", "2026-01-05T07:00:10|02"), "line 2", "is before Start"),
        (LIST.replace("mem=64G", "mem=much"), "line 2", "mem is 'much'"),
        (LIST.replace("|2|16|", "|two|16|"), "line 2", "NNodes is 'two'"),
        (f"{HEADER}\n", "", "contains no job that ran"),
    ],
)
def test_an_invalid_line_is_rejected_with_its_number(text: str, at: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_workload(write(tmp_path, text))

    assert problem in str(error.value)
    assert f"jobs.txt: {at}" in str(error.value)


@given(st.integers(0, 400 * 86400))
def test_every_duration_format_of_slurm_is_parsed(length_s: int) -> None:
    import tempfile

    days, rest = divmod(length_s, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    text = f"JobID|Submit|Elapsed\n1|2026-01-05T08:00:00|{f'{days}-' if days else ''}{clock}\n"
    with tempfile.TemporaryDirectory() as folder:
        (job,) = read_workload(write(Path(folder), text)).jobs

    assert job.profile.duration == length_s * 10**9
