"""Reading openb pod lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.formats.traces import openb
from batkube.workloads.model import Workload
from batkube.workloads.reader import read_workload

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


def read(tmp_path: Path, *rows: str, header: str = HEADER) -> Workload:
    path = tmp_path / "pods.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return read_workload(path)


def test_a_pod_has_the_values_of_its_row(tmp_path: Path) -> None:
    workload = read(tmp_path, "p0,12000,16384,1,1000,,LS,Running,100,700,150")

    (job,) = workload.jobs
    assert (job.name, job.submit, job.size, job.walltime) == ("p0", seconds(100), 1, None)
    assert job.requests == (("cpu", 12000), ("memory", 16 << 30), ("nvidia.com/gpu", 1))
    assert job.profile.name == "delay550"
    assert workload.notes == ()


def test_the_run_time_counts_from_creation_if_no_scheduling_time_is_recorded(tmp_path: Path) -> None:
    assert read(tmp_path, "p0,1,1,0,0,,LS,Running,100,700,").jobs[0].profile.name == "delay600"


def test_a_pod_that_never_ran_is_left_out_and_counted(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        "p0,1,1,0,0,,BE,Pending,100,700,",
        "p1,1,1,0,0,,BE,Running,100,,",
        "p2,1,1,0,0,,BE,Succeeded,100,200,100",
    )

    assert [job.name for job in workload.jobs] == ["p2"]
    assert workload.notes == ((openb.NEVER_SCHEDULED, 1), (openb.NO_TIMES, 1))


def test_a_fraction_of_a_gpu_counts_as_a_whole_one_with_a_note(tmp_path: Path) -> None:
    workload = read(tmp_path, "p0,1,1,1,460,V100M16|V100M32,LS,Failed,0,10,0")

    assert dict(workload.jobs[0].requests)["nvidia.com/gpu"] == 1
    assert workload.notes == ((openb.FAILED, 1), (openb.SHARED_GPU, 1), (openb.GPU_MODEL_IGNORED, 1))


def test_pods_are_sorted_by_creation_and_share_requests(tmp_path: Path) -> None:
    workload = read(
        tmp_path, "a,1,1,0,0,,LS,Running,9,10,9", "b,1,1,0,0,,LS,Running,5,10,5", "c,1,1,0,0,,LS,Running,5,6,5"
    )

    assert [job.name for job in workload.jobs] == ["b", "c", "a"]
    assert workload.jobs[0].requests is workload.jobs[2].requests


@pytest.mark.parametrize(
    ("rows", "at", "part"),
    [
        ([",1,1,0,0,,LS,Running,0,1,0"], "line 2", "no name"),
        (["a,1,1,0,0,,LS,Running,0,1,0"] * 2, "line 3", "'a' is a duplicate of line 2"),
        (["a,x,1,0,0,,LS,Running,0,1,0"], "line 2", "cpu_milli is 'x'"),
        (["a,1,-1,0,0,,LS,Running,0,1,0"], "line 2", "memory_mib is '-1'"),
        (["a,1,1,0,0,,LS,Running,-5,1,0"], "line 2", "creation_time is -5, which is negative"),
        (["a,1,1,0,0,,LS,Running,0,later,0"], "line 2", "deletion_time"),
        (["a,1,1,0,0,,LS,Running,0,5,9"], "line 2", "deleted before it was scheduled"),
        ([], None, "no pod that ran"),
        (["a,1,1,0,0,,LS,Pending,0,5,"], None, "1 were left out"),
    ],
)
def test_an_invalid_list_is_rejected_with_its_line(tmp_path: Path, rows: list[str], at: str | None, part: str) -> None:
    with pytest.raises(InputError, match=part) as error:
        read(tmp_path, *rows)

    assert error.value.at == at


def test_a_list_of_nodes_is_rejected_as_a_workload(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="header lacks name") as error:
        read(tmp_path, "n0,1,1,1,P100", header="sn,cpu_milli,memory_mib,gpu,model")

    assert error.value.remedy is not None
    assert "--platform" in error.value.remedy


def test_the_published_trace_is_read(shared_data: Path) -> None:
    workload = read_workload(shared_data / "openb" / "openb_pod_list_default.csv")

    assert len(workload.jobs) == 8152 - 897
    assert dict(workload.notes)[openb.NEVER_SCHEDULED] == 897
    assert sum(dict(job.requests).get("nvidia.com/gpu", 0) for job in workload.jobs) > 6000
