"""Traces of Alibaba's and Google's clusters as workloads. The samples are synthetic and have the published columns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import batkube
from batkube.kernel.errors import InputError
from batkube.workloads.companion_files import companion_files
from batkube.workloads.formats.traces.alibaba import SUBMITTED_AT_START, TASK_RUN_TIMES, UNKNOWN_TASK
from batkube.workloads.formats.traces.cloud_tasks import (
    EARLIER_ATTEMPT,
    FAILED,
    NEVER_STARTED,
    NO_END,
    NO_REQUESTS,
    NORMALISED,
    STARTED_BEFORE_TRACE,
)
from batkube.workloads.formats.traces.google import DIFFERENT_MACHINE, IN_RESERVATION, RESERVATION
from batkube.workloads.reader import read_workload

GIB = 1 << 30
AFTER = 2**63 - 1

TASKS_2018 = """\
M1,2,j_1,1,Terminated,100,160,100,0.5
R2_1,1,j_1,1,Terminated,160,190,50,1.25
task_x,1,j_2,11,Failed,200,230,700,17.17
task_y,1,j_3,1,Running,200,0,100,0.5
task_z,1,j_4,1,Waiting,0,0,100,0.5
"""
INSTANCES_2018 = """\
ins_1,M1,j_1,1,Terminated,100,130,m_7,1,1,90,110,0.3,0.4
ins_2,M1,j_1,1,Failed,100,105,m_8,1,2,90,110,0.3,0.4
ins_2,M1,j_1,1,Terminated,110,160,m_9,2,2,90,110,0.3,0.4
ins_3,R2_1,j_1,1,Interrupted,160,165,m_9,1,1,90,110,0.3,0.4
ins_4,lost,j_9,1,Terminated,170,171,m_9,1,1,,,,
"""
TASKS_2017 = """\
6459,6524,3,4,2,Terminated,50,0.0080
-10,0,4,7,1,Waiting,,
-10,40,4,8,1,Terminated,100,0.01
7000,7001,5,9,1,Terminated,,
"""
TASK_EVENTS = f"""\
600000000,,5,0,,0,ann,2,9,0.25,0.125,0.001,1
601000000,,5,0,77,1,ann,2,9,0.25,0.125,0.001,1
661500000,,5,0,77,4,ann,2,9,0.25,0.125,0.001,1
602000000,,5,1,,0,bob,0,0,0.0125,,,0
603000000,,5,1,78,1,bob,0,0,0.0125,,,0
604000000,,5,1,78,2,bob,0,0,0.0125,,,0
604000000,,5,1,,0,bob,0,0,0.0125,,,0
700000000,,5,1,79,1,bob,0,0,0.0125,,,0
710000000,,5,1,79,3,bob,0,0,0.0125,,,0
0,,6,0,80,1,cyd,1,4,0.5,0.5,,0
900000000,,6,0,80,4,cyd,1,4,0.5,0.5,,0
800000000,,7,0,81,1,cyd,1,4,0.5,0.5,,0
{AFTER},,7,0,81,4,cyd,1,4,0.5,0.5,,0
800000000,,8,0,,0,cyd,1,4,0.5,0.5,,0
"""


def event_2019(time: int, type: object, collection: int, index: int, **more: object) -> str:
    fields = {"time": str(time), "type": type, "collection_id": str(collection), "instance_index": str(index)}
    usual = {"collection_type": "0", "priority": "200", "scheduling_class": "1", "alloc_collection_id": "0"}
    return json.dumps({**fields, **usual, "resource_request": {"cpus": 0.03, "memory": 0.002}, **more}) + "\n"


INSTANCE_EVENTS = "".join(
    (
        event_2019(20_000_000, "3", 11, 0),
        event_2019(10_000_000, "0", 11, 0),
        event_2019(95_000_000, "6", 11, 0),
        event_2019(10_000_000, "SUBMIT", 12, 3, alloc_collection_id="99"),
        event_2019(10_000_000, "SCHEDULE", 12, 3, alloc_collection_id="99"),
        event_2019(12_000_000, "KILL", 12, 3, alloc_collection_id="99"),
        event_2019(10_000_000, "0", 99, 0, collection_type="1"),
        event_2019(10_000_000, "3", 13, 0),
    )
)


def write(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def summary_of(path: Path) -> list[tuple[str, float, str, dict[str, int]]]:
    return [(job.name, job.submit / 1e9, job.profile.name, dict(job.requests)) for job in read_workload(path).jobs]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem", TASKS_2018),
        ("task_create_time, task_end_time, job_id, task_id, instances, status, cpus, memory", TASKS_2017),
    ],
)
def test_a_header_before_a_table_is_ignored(names: str, text: str, tmp_path: Path) -> None:
    assert summary_of(write(tmp_path, f"{names}\n{text}", "named.csv")) == summary_of(
        write(tmp_path, text, "batch_task.csv")
    )


def test_tasks_of_2018_become_a_job_per_instance(tmp_path: Path) -> None:
    """Cpu in hundredths of a core, memory in hundredths of the largest machine: a GiB each."""
    path = write(tmp_path, TASKS_2018, "batch_task.csv")

    small, half = {"cpu": 1000, "memory": GIB // 2}, {"cpu": 500, "memory": GIB * 5 // 4}
    assert summary_of(path) == [
        ("j_1.M1.1", 100, "delay60", small),
        ("j_1.M1.2", 100, "delay60", small),
        ("j_1.R2_1", 160, "delay30", half),
        ("j_2.task_x", 200, "delay30", {"cpu": 7000, "memory": -(-1717 * GIB // 100)}),
    ]
    notes = {TASK_RUN_TIMES: 2, SUBMITTED_AT_START: 4, FAILED: 1, NO_END: 1, NEVER_STARTED: 1, NORMALISED: 4}
    assert dict(read_workload(path).notes) == notes


def test_instances_have_recorded_run_times_and_the_requests_of_their_task(tmp_path: Path) -> None:
    write(tmp_path, TASKS_2018, "batch_task.csv.gz")
    path = write(tmp_path, INSTANCES_2018, "batch_instance.csv")

    small = {"cpu": 1000, "memory": GIB // 2}
    assert summary_of(path) == [
        ("j_1.M1.1", 100, "delay30", small),
        ("j_1.M1.2", 110, "delay50", small),
        ("j_9.lost.1", 170, "delay1", {}),
    ]
    notes = {EARLIER_ATTEMPT: 2, SUBMITTED_AT_START: 3, UNKNOWN_TASK: 1, NO_REQUESTS: 1, NORMALISED: 2}
    assert dict(read_workload(path).notes) == notes
    assert companion_files(path) == [tmp_path / "batch_task.csv.gz"]


def test_instances_without_the_table_of_tasks_are_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, INSTANCES_2018, "batch_instance.csv")

    with pytest.raises(InputError, match=r"no batch_task\.csv in its folder"):
        read_workload(path)


def test_tasks_of_2017_have_shares_of_memory_and_times_of_creation(tmp_path: Path) -> None:
    path = write(tmp_path, TASKS_2017, "batch_task.csv")

    requests = {"cpu": 500, "memory": -(-8 * GIB // 10)}
    assert summary_of(path) == [
        ("3.4.1", 6459, "delay65", requests),
        ("3.4.2", 6459, "delay65", requests),
        ("5.9", 7000, "delay1", {}),
    ]
    assert dict(read_workload(path).notes) == {
        TASK_RUN_TIMES: 2,
        NEVER_STARTED: 1,
        STARTED_BEFORE_TRACE: 1,
        NO_REQUESTS: 1,
        NORMALISED: 2,
    }


def test_tasks_of_2011_run_as_long_as_their_last_attempt(tmp_path: Path) -> None:
    path = write(tmp_path, TASK_EVENTS, "part-00000-of-00500.csv.gz")

    workload = read_workload(path)

    assert summary_of(path) == [
        ("5.0", 600, "delay60.5", {"cpu": 25_000, "memory": GIB * 25 // 2}),
        ("5.1", 602, "delay10", {"cpu": 1250}),
    ]
    assert [(job.user, job.priority, job.queue) for job in workload.jobs] == [("ann", 9, "2"), ("bob", 0, "0")]
    notes = {
        DIFFERENT_MACHINE: 1,
        EARLIER_ATTEMPT: 1,
        FAILED: 1,
        STARTED_BEFORE_TRACE: 1,
        NO_END: 1,
        NEVER_STARTED: 1,
        NORMALISED: 2,
    }
    assert dict(workload.notes) == notes


@pytest.mark.parametrize(("ending", "companion_ending"), [(".gz", ".gz"), ("", ".gz"), (".gz", ""), ("", "")])
def test_instance_events_of_2019_are_sorted_and_get_the_users_of_their_collections(
    tmp_path: Path, ending: str, companion_ending: str
) -> None:
    path = write(tmp_path, INSTANCE_EVENTS, f"instance_events-000000000000.json{ending}")
    owners = json.dumps({"time": "1", "type": "0", "collection_id": "11", "user": "dee"}) + "\n"
    companion = write(tmp_path, owners, f"collection_events-000000000000.json{companion_ending}")

    workload = read_workload(path)

    requests = {"cpu": 3000, "memory": -(-2 * GIB // 10)}
    assert summary_of(path) == [("11.0", 10, "delay75", requests), ("12.3", 10, "delay2", requests)]
    assert [(job.user, job.priority) for job in workload.jobs] == [("dee", 200), ("", 200)]
    assert dict(workload.notes) == {RESERVATION: 1, IN_RESERVATION: 1, FAILED: 1, NO_END: 1, NORMALISED: 2}
    assert companion_files(path) == [companion]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("batch_task.csv", TASKS_2018),
        ("task_events.csv", TASK_EVENTS),
        ("instance_events.json", INSTANCE_EVENTS),
    ],
)
def test_a_trace_runs_on_machines_as_large_as_its_largest(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, text, name)

    run = batkube.run(workload=path, platform="2x100,100Gi", scheduler="policy:first-fit", out=tmp_path / "out")

    frame = run.jobs.set_index("job_id")
    assert len(frame) == len(read_workload(path).jobs)
    assert (frame["waiting_time"] == 0).all()
    assert run.manifest["inputs"], "the trace is an input in the manifest"


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("alibaba", "a,b\n", "has 2 columns; batch_task"),
        ("alibaba", TASKS_2018 + "M1,2,j_1,1,Gone,100,160,100,0.5\n", "line 6: status 'Gone' is not one of"),
        ("alibaba", TASKS_2018 + "x\n", "line 6: has 1 columns, but the first line has 9"),
        (
            "alibaba",
            TASKS_2018.replace(",100,160,", ",1oo,160,"),
            "line 1: the start is '1oo', which is not a whole number",
        ),
        (
            "alibaba",
            TASKS_2018.replace("17.17", "much"),
            "line 3: memory is 'much', which is not a non-negative number",
        ),
        ("alibaba", "task_z,1,j_4,1,Waiting,0,0,100,0.5\n", "contains no task that started and ended .1 were left out"),
        ("google", TASK_EVENTS + "1,2\n", "line 15: has 2 columns, but task_events has 13"),
        (
            "google",
            TASK_EVENTS.replace(",77,1,", ",77,12,"),
            "line 2: the event type is 12, which is not between 0 and 8",
        ),
        ("google", TASK_EVENTS.replace("0.25", "-1"), "task 5.0: cpu is '-1', which is not a non-negative number"),
        ("google", "{nonsense\n", "line 1: is not JSON"),
        ("google", event_2019(1, "BEGIN", 1, 1), "line 1: the event type is 'BEGIN'"),
        ("google", '{"type": 0}\n', "line 1: collection_id is '', which is not a whole number"),
    ],
)
def test_an_invalid_table_is_rejected_with_its_place(tmp_path: Path, format: str, text: str, message: str) -> None:
    path = write(tmp_path, text, "trace")

    with pytest.raises(InputError, match=message):
        read_workload(path, format=format)


attempts_of_task = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=5)


@given(st.lists(attempts_of_task, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_a_task_runs_as_long_as_its_last_attempt_whatever_the_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[list[tuple[int, int]]], random: object
) -> None:
    """Each attempt is a pause and a length, in seconds; all but the last are evicted."""
    events, expected = [], {}
    for index, attempts in enumerate(tasks):
        now = 5
        events.append(event_2019(now * 10**6, "0", 1, index))
        for number, (pause, length) in enumerate(attempts, 1):
            begin, now = now + pause, now + pause + length
            events.append(event_2019(begin * 10**6, "3", 1, index))
            # Events of one instant are sorted by their lines, so an attempt of length 0 ends a line after its begin.
            events.append(event_2019(now * 10**6 + 1, "6" if number == len(attempts) else "4", 1, index))
            now += 1
        expected[f"1.{index}"] = length + 1e-6
    random.shuffle(events)  # type: ignore[attr-defined]
    path = write(tmp_path_factory.mktemp("trace"), "".join(events), "instance_events.json")

    workload = read_workload(path)

    assert {job.name: round(job.profile.duration / 1e9, 6) for job in workload.jobs} == expected  # type: ignore[attr-defined]
    assert dict(workload.notes).get(EARLIER_ATTEMPT, 0) == sum(len(attempts) - 1 for attempts in tasks)
