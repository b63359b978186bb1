"""Recorded pods of a cluster, from a pod list of kubectl or an audit log."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import batkube
from batkube.kernel.errors import InputError
from batkube.outputs.results import Results
from batkube.workloads.formats.kubernetes.audit_logs import POD_NOT_LOGGED
from batkube.workloads.formats.kubernetes.pod_histories import (
    DELETED_WHILE_RUNNING,
    NODE_POD,
    NOT_FINISHED,
    NOT_STARTED,
    PLACEMENT_LOST,
)
from batkube.workloads.formats.kubernetes.pod_lists import DELETED_BEFORE_LIST
from batkube.workloads.reader import read_workload

EPOCH = datetime.datetime(2026, 1, 5, 8, tzinfo=datetime.UTC)


def timestamp(second: float) -> str:
    return (EPOCH + datetime.timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def pod(name: str, created: float, start: float | None, end: float | None, **spec: object) -> dict[str, Any]:
    """Return a pod as the API server returns it."""
    if end is not None:
        state: dict[str, Any] = {
            "terminated": {"exitCode": 0, "startedAt": timestamp(start or 0), "finishedAt": timestamp(end)}
        }
    else:
        state = {"running": {"startedAt": timestamp(start)}} if start is not None else {"waiting": {}}
    phase = "Pending" if start is None else "Running" if end is None else "Succeeded"
    requests = {"cpu": "500m", "memory": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": timestamp(created)},
        "spec": {"containers": [{"name": "c", "image": "busybox", "resources": {"requests": requests}}], **spec},
        "status": {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]},
    }


def write_list(folder: Path, *items: dict[str, Any]) -> Path:
    """Write a pod list as kubectl does."""
    path = folder / "pods.json"
    path.write_text(json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=4))
    return path


def test_pods_of_a_list_are_jobs_with_their_requests_and_run_times(tmp_path: Path) -> None:
    of_node = pod("proxy", 0, 1, None)
    of_node["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "proxy"}]
    failed = pod("bad", 30, 31, 41, schedulerName="volcano", priority=7)
    failed["status"]["phase"] = "Failed"
    failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] = 3
    about = {"kind": "Pod", "namespace": "team", "name": "long-gone"}
    event = {"apiVersion": "v1", "kind": "Event", "involvedObject": about, "reason": "Scheduled"}
    path = write_list(
        tmp_path,
        pod("b", 20, 25, 85, nodeSelector={"disk": "ssd"}),
        pod("a", 10, 10, 70),
        failed,
        pod("waits", 11, None, None),
        pod("runs", 12, 13, None),
        of_node,
        event,
        event,
    )

    workload = read_workload(path)

    jobs = [(job.name, job.submit / 1e9, job.profile.name, job.scheduler, job.priority) for job in workload.jobs]
    assert jobs == [("a", 0, "delay60", "", 0), ("b", 10, "delay60", "", 0), ("bad", 20, "delay10_exit3", "volcano", 7)]
    assert {job.user for job in workload.jobs} == {"team"}
    assert dict(workload.jobs[0].requests) == {"cpu": 500, "memory": 1 << 30}
    assert dict(workload.notes) == {
        NOT_STARTED: 1,
        NOT_FINISHED: 1,
        NODE_POD: 1,
        DELETED_BEFORE_LIST: 1,
        PLACEMENT_LOST: 1,
    }


def test_the_pod_list_of_a_run_replays_with_the_same_times(tmp_path: Path) -> None:
    recipe = {
        "generate": "poisson",
        "jobs": 80,
        "interval": "20s",
        "run-time": "choice:30,90,600",
        "cpu": "0.5",
        "memory": "1Gi",
    }
    first = batkube.run(
        workload=recipe, platform="2x2,4Gi", scheduler="policy:first-fit", seed=4, out=tmp_path / "first"
    )
    jobs = Results(first.path).jobs
    second_of = jobs["submission_time"].round()
    items = [
        pod(f"j{row.job_id}", round(row.submission_time), row.starting_time, row.finish_time)
        for row in jobs.itertuples()
    ]
    path = write_list(tmp_path, *items)

    again = batkube.run(workload=path, platform="2x2,4Gi", scheduler="policy:first-fit", out=tmp_path / "again")

    assert len(again.jobs) == len(second_of) == 80
    lengths = jobs.set_index("job_id")["execution_time"]
    replayed = again.jobs.set_index("job_id")["execution_time"]
    for name, length in lengths.items():
        assert replayed[f"j{name}"] == pytest.approx(length, abs=1e-5)
    # Submissions are whole seconds in the API, so waits differ a little.
    assert again.metrics.wait_s_mean == pytest.approx(first.metrics.wait_s_mean, rel=0.05, abs=2)


def audit(
    verb: str, name: str, at: float, part: str = "", level: str = "RequestResponse", **more: object
) -> dict[str, Any]:
    reference = {"resource": "pods", "namespace": "team", "name": name, "apiVersion": "v1"}
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level,
        "stage": "ResponseComplete",
        "verb": verb,
        "objectRef": {**reference, **({"subresource": part} if part else {})},
        "responseStatus": {"code": 201 if verb == "create" else 200},
        "stageTimestamp": timestamp(at),
        **more,
    }


def write_log(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "audit.log"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


def status_of(name: str, start: float | None, end: float | None) -> dict[str, Any]:
    return {"status": pod(name, 0, start, end)["status"]}


def test_an_audit_log_gives_the_times_of_pods(tmp_path: Path) -> None:
    generated = pod("worker-x7f2k", 5.25, None, None)
    path = write_log(
        tmp_path,
        audit("list", "", 0),
        audit("create", "a", 5.0, responseObject=pod("a", 5, None, None)),
        audit("create", "", 5.25, responseObject=generated, requestObject={"metadata": {"generateName": "worker-"}}),
        audit("create", "a", 5.5, "binding", requestObject={"target": {"name": "node-0"}}),
        audit("patch", "a", 6.5, "status", responseObject=status_of("a", 6, None)),
        audit("patch", "worker-x7f2k", 7.0, "status", requestObject=status_of("w", 7, None)),
        audit("patch", "a", 66.9, "status", responseObject=status_of("a", 6, 66)),
        audit("delete", "a", 90.0),
        audit("delete", "worker-x7f2k", 100.0),
        audit("delete", "worker-x7f2k", 130.5),
        audit("create", "a", 200.0, responseObject=pod("a", 200, None, None)),
        audit("patch", "a", 210.0, "status", responseObject=status_of("a", 201, 210)),
        audit("create", "not-logged", 220.0, level="Metadata"),
        {**audit("create", "rejected", 230.0, responseObject=pod("r", 1, None, None)), "responseStatus": {"code": 403}},
    )

    workload = read_workload(path)

    jobs = [(job.name, job.submit / 1e9, job.profile.name) for job in workload.jobs]
    assert jobs == [("a", 0, "delay60"), ("worker-x7f2k", 0.25, "delay123.5"), ("a-2", 195, "delay9")]
    assert dict(workload.notes) == {POD_NOT_LOGGED: 1, DELETED_WHILE_RUNNING: 1}
    assert len(batkube.run(workload=path, platform="2x2,4Gi", out=tmp_path / "out").jobs) == 3


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"apiVersion": "v1", "items": [{"kind": "Pod"}], "kind": "List"}', "items[0].metadata"),
        (
            '{"apiVersion": "v1", "items": [{"kind": "Pod", "metadata": {"name": "x"}, "spec": {}}]}',
            "is missing or not a time",
        ),
        ('{"apiVersion": "v1", "items": []}', "contains no pod that started and ended"),
        ('{"apiVersion": "v1", "items": {}}', "it has no `items`"),
        ('{"apiVersion": "v1", "items": [', "is not JSON"),
    ],
)
def test_an_unusable_pod_list_is_rejected(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "pods.json").write_text(content)

    with pytest.raises(InputError) as error:
        read_workload(tmp_path / "pods.json")

    assert problem in str(error.value)


def test_an_unusable_audit_log_is_rejected_with_its_line(tmp_path: Path) -> None:
    for events, problem in (
        ([audit("list", "", 0)], "contains no creation of a pod"),
        ([audit("create", "x", 0, level="Metadata")], "contains no pod that started and ended (1 were left out)"),
        ([audit("list", "", 0), {"kind": "Pod", "apiVersion": "v1"}], "line 2: is not an Event of audit.k8s.io"),
        (
            [audit("create", "a", 1), {**audit("create", "b", 2), "stageTimestamp": "soon"}],
            "'soon', which is not a time",
        ),
    ):
        with pytest.raises(InputError) as error:
            read_workload(write_log(tmp_path, *events))
        assert problem in str(error.value)


RECORDED = Path(__file__).parent / "cluster"
#: The recorded pods that ended without deletion, and their run times by their statuses.
ENDED = {
    "job-0": "delay7",
    "job-1": "delay11",
    "job-2": "delay14",
    "job-3": "delay6",
    "worker-6mrjn": "delay8",
    "fails": "delay6_exit3",
}


def test_the_audit_log_of_a_real_server_gives_the_times_of_pods() -> None:
    workload = read_workload(RECORDED / "audit.log")

    jobs = {job.name: job.profile.name for job in workload.jobs}
    # The deleted pod ran from 07:47:01 until the response to the kubelet's deletion; the evicted one has an end.
    assert jobs == {**ENDED, "deleted": "delay15.93682", "evicted": "delay14_exit137"}
    assert dict(workload.notes) == {DELETED_WHILE_RUNNING: 1, NOT_STARTED: 1}
    assert [dict(job.requests)["cpu"] for job in workload.jobs if job.name == "worker-6mrjn"] == [500]


def test_the_pod_list_gives_the_same_jobs_as_the_audit_log() -> None:
    workload = read_workload(RECORDED / "pods.json")
    audited = {job.name: job for job in read_workload(RECORDED / "audit.log").jobs}

    assert {job.name: job.profile.name for job in workload.jobs} == ENDED
    assert dict(workload.notes) == {NOT_STARTED: 1, DELETED_BEFORE_LIST: 2}
    for job in workload.jobs:
        # Creation times are whole seconds in the API, including that of the first pod, which is 0 here.
        assert abs(job.submit - audited[job.name].submit) < 10**9
        assert job.requests == audited[job.name].requests
