"""A Batsim as the engine of a run: it executes the jobs that the run's scheduler places, and both have one clock.

The Batsim is `batkube batsim`, which other tests compare with recordings of the real one; and the real one, if a
`batsim` is on the PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import opt_in
from tests.batsim.platforms import silent_platform
from tests.batsim.recordings import Recording, read_table

import batkube
import published
from batkube.batsim.protocol.zmq_sockets import free_endpoint
from batkube.batsim.simulator.run import SimulatorArguments, run_batsim
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.intervals import members, parse_intervals

OURS, REAL = "batkube batsim", "the batsim on the PATH"
BATKUBE = [sys.executable, "-m", "batkube"]
EIGHT_JOBS = {
    "nb_res": 4,
    "jobs": [
        {"id": str(number), "subtime": number, "res": 1 + number % 3, "walltime": 100, "profile": f"p{number % 2}"}
        for number in range(8)
    ],
    "profiles": {"p0": {"type": "delay", "delay": 10}, "p1": {"type": "delay", "delay": 3.5}},
}


def platform_file(folder: Path, machines: int, more: str = "") -> Path:
    """Write a SimGrid platform without a network."""
    return silent_platform(folder, machines, prefix="node", more=f'speed="1f" {more}')


def workload_file(folder: Path, content: dict[str, Any]) -> Path:
    """Write a workload."""
    path = folder / "workload.json"
    path.write_text(json.dumps(content))
    return path


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Install a shell script as the `batsim` on the PATH."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "batsim"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def own_batsim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our Batsim as the `batsim` on the PATH."""
    install(tmp_path, monkeypatch, f'exec {sys.executable} -m batkube batsim "$@"')


@pytest.fixture(params=[OURS, REAL])
def batsim(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Our Batsim as the `batsim` on the PATH, and the real one if it is installed."""
    if request.param == OURS:
        install(tmp_path, monkeypatch, f'exec {sys.executable} -m batkube batsim "$@"')
    elif shutil.which("batsim") is None:
        pytest.skip("needs a batsim on the PATH: docs/how-to/coming-from-batsim.md describes how to build it")
    return str(request.param)


@pytest.mark.usefixtures("batsim")
@pytest.mark.parametrize(("workload", "makespan", "wait"), [("burst", 2210.0, 979.2), ("spaced", 2280.0, 57.6)])
def test_the_2020_experiments_have_their_theoretical_values(
    workload: str, makespan: float, wait: float, tmp_path: Path
) -> None:
    inputs = {"workload": published.WORKLOADS[workload](tmp_path), "platform": platform_file(tmp_path, 16)}

    run = batkube.run(engine="batsim", out=tmp_path / "out", **inputs)

    assert run.schedule["makespan"] == makespan
    assert run.schedule["mean_waiting_time"] == pytest.approx(wait, abs=0.05)
    assert (tmp_path / "out" / "engine" / "out_jobs.csv").exists()
    alone = batkube.run(out=tmp_path / "alone", **inputs)
    assert list(run.jobs["starting_time"]) == pytest.approx(list(alone.jobs["starting_time"]), abs=1e-6)


@pytest.mark.usefixtures("batsim")
@pytest.mark.parametrize(("workload", "makespan", "wait"), [("burst", 2210.0, 979.2), ("spaced", 2280.0, 57.6)])
def test_the_2020_experiments_have_them_with_a_real_kube_scheduler(
    workload: str, makespan: float, wait: float, tmp_path: Path, kube_scheduler: str
) -> None:
    run = batkube.run(
        workload=published.WORKLOADS[workload](tmp_path),
        platform=platform_file(tmp_path, 16),
        scheduler=kube_scheduler,
        engine="batsim",
    )

    assert run.schedule["makespan"] == makespan
    assert run.schedule["mean_waiting_time"] == pytest.approx(wait, abs=0.05)


def test_a_trace_under_a_real_kube_scheduler_is_the_same_with_either_engine(
    batsim: str, tmp_path: Path, kube_scheduler: str, shared_data: Path
) -> None:
    """KTH-SP2, each job on one machine: some hours of short jobs with our Batsim, more with the real one.

    These are 17 hours on few machines, so that jobs wait, or a month if slow tests are enabled: each second of it is
    two messages, which takes three quarters of an hour.
    """
    workload = tmp_path / "trace.json"
    cut, machines = ["--from", "240h", "--to", "246h", "--shift", "--trim", "20m"], 32
    if batsim == REAL and opt_in.IS_ENABLED:
        cut, machines = ["--to", "30d"], 6
    elif batsim == REAL:
        cut, machines = ["--from", "240h", "--to", "258h", "--shift", "--trim", "6h"], 6
    trace = str(shared_data / "swf" / "KTH-SP2-1996-2.swf")
    subprocess.run([*BATKUBE, "workload", "convert", trace, "-o", str(workload), *cut, "--clip-size", "1"], check=True)
    inputs = {"workload": workload, "platform": platform_file(tmp_path, machines), "scheduler": kube_scheduler}

    run = batkube.run(engine="batsim", **inputs)

    alone = batkube.run(**inputs)
    assert list(run.jobs["starting_time"]) == pytest.approx(list(alone.jobs["starting_time"]), abs=1e-3)
    assert list(run.jobs["finish_time"]) == pytest.approx(list(alone.jobs["finish_time"]), abs=1e-3)
    assert list(run.jobs["allocated_resources"]) == list(alone.jobs["allocated_resources"])
    assert len(run.jobs) > 20


@pytest.mark.usefixtures("own_batsim")
def test_machines_are_matched_by_name(tmp_path: Path) -> None:
    """Of twelve hosts, Batsim's id 2 is node10, and ours is node2: both must run a job on the same host."""
    jobs = [{"id": f"{n:02}", "subtime": n, "res": 1, "profile": "p"} for n in range(12)]
    content = {"nb_res": 12, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 50}}}
    platform = platform_file(tmp_path, 12)

    run = batkube.run(
        workload=workload_file(tmp_path, content), platform=platform, engine="batsim", out=tmp_path / "out"
    )

    ours = dict(zip(run.jobs["job_id"].astype(int), run.jobs["allocated_resources"].astype(int), strict=True))
    assert ours == {number: number for number in range(12)}
    header, *rows = read_table(tmp_path / "out" / "engine" / "out_jobs.csv")
    theirs = {int(row[0]): int(row[header.index("allocated_resources")]) for row in rows}
    in_text_order = sorted(f"node{number}" for number in range(12))
    assert {job: in_text_order[number] for job, number in theirs.items()} == {n: f"node{n}" for n in range(12)}


def test_machines_that_become_unavailable_in_batsim_are_noted_by_name(tmp_path: Path) -> None:
    events = tmp_path / "events.txt"
    events.write_text('{"timestamp": 2, "type": "machine_unavailable", "resources": "2"}\n')
    jobs = [{"id": "0", "subtime": 0, "res": 1, "profile": "p"}]
    workload = workload_file(tmp_path, {"nb_res": 12, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 5}}})
    platform, endpoint = platform_file(tmp_path, 12), free_endpoint()
    arguments = SimulatorArguments(platform, [workload], endpoint, str(tmp_path / "engine"), events=[events])
    thread = threading.Thread(target=run_batsim, args=(arguments,), daemon=True)
    thread.start()

    batkube.run(workload=workload, platform=platform, engine=f"batsim:{endpoint}", out=tmp_path / "out")

    thread.join(10)
    assert "event_machine_unavailable at 2 s: node10" in (tmp_path / "out" / "fidelity.json").read_text()


def _engine_at(endpoint: str, folder: Path, workload: Path, platform: Path) -> threading.Thread:
    """Start our Batsim with a scheduler at an endpoint."""
    arguments = SimulatorArguments(
        platform, [workload], endpoint, str(folder / "engine"), reply_timeout_ns=30_000_000_000
    )
    thread = threading.Thread(target=run_batsim, args=(arguments,), daemon=True)
    thread.start()
    return thread


_JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(1, 20_000_000), st.integers(1, 25)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(jobs=_JOBS, policy=st.sampled_from(["fcfs", "easy", "conservative"]))
def test_jobs_start_and_end_as_without_batsim(
    jobs: list[tuple[int, int, int, int]], policy: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, endpoint = tmp_path_factory.mktemp("engine"), free_endpoint()
    content = {
        "nb_res": 4,
        "jobs": [
            {"id": str(number), "subtime": submit, "res": size, "walltime": limit, "profile": f"p{number}"}
            for number, (submit, size, _, limit) in enumerate(jobs)
        ],
        # Whole microseconds, the resolution of Batsim's messages.
        "profiles": {
            f"p{number}": {"type": "delay", "delay": length / 1e6} for number, (_, _, length, _) in enumerate(jobs)
        },
    }
    workload, platform = workload_file(folder, content), platform_file(folder, 4)
    batsim = _engine_at(endpoint, folder, workload, platform)

    inputs = {"workload": workload, "platform": platform, "scheduler": f"policy:{policy}"}
    run = batkube.run(engine=f"batsim:{endpoint}", watchdog="30s", **inputs)

    batsim.join(10)
    assert not batsim.is_alive()
    columns = ["job_id", "final_state", "starting_time", "finish_time", "allocated_resources"]
    alone = batkube.run(**inputs)
    assert run.jobs[columns].to_csv() == alone.jobs[columns].to_csv()


@pytest.mark.usefixtures("own_batsim")
def test_pods_that_share_a_machine_share_that_of_batsim(tmp_path: Path) -> None:
    jobs = [{"id": str(number), "subtime": 0, "res": 2, "profile": "p", "cpu": "1"} for number in range(4)]
    content = {"nb_res": 2, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 10, "cpu": "1"}}}

    run = batkube.run(
        workload=workload_file(tmp_path, content),
        platform=platform_file(tmp_path, 2, 'core="2"'),
        engine="batsim",
        resources="requests",
        out=tmp_path / "out",
    )

    # Two jobs of two pods each fit on two machines of two cores.
    assert sorted(run.jobs["finish_time"]) == [10, 10, 20, 20]
    theirs = (tmp_path / "out" / "engine" / "out_jobs.csv").read_text()
    assert theirs.count("COMPLETED_SUCCESSFULLY") == 4


@pytest.mark.usefixtures("own_batsim")
def test_a_job_whose_node_fails_is_killed_in_batsim(tmp_path: Path) -> None:
    events = [{"at": 5, "fail": "node0"}]

    run = batkube.run(
        workload=workload_file(tmp_path, EIGHT_JOBS),
        platform=platform_file(tmp_path, 4),
        engine="batsim",
        events=events,
        out=tmp_path / "out",
    )

    assert list(run.jobs["final_state"]).count("COMPLETED_FAILED") == 1
    theirs = (tmp_path / "out" / "engine" / "out_jobs.csv").read_text()
    assert theirs.count("COMPLETED_KILLED") == 1
    assert theirs.count("COMPLETED_SUCCESSFULLY") == 7


class ReplayingBatsim(threading.Thread):
    """Repeats the messages of a Batsim, and collects the replies."""

    def __init__(self, endpoint: str, messages: list[str]) -> None:
        super().__init__(daemon=True)
        self._endpoint = endpoint
        self._messages = messages
        self.replies: list[dict[str, Any]] = []

    def run(self) -> None:
        """Send the messages one after the other."""
        with zmq.Context() as context, context.socket(zmq.REQ) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(self._endpoint)
            for message in self._messages:
                socket.send_string(message)
                if not socket.poll(30_000):
                    return
                self.replies.append(json.loads(socket.recv()))


@pytest.mark.parametrize(
    "name",
    [
        "burst200",
        "spaced200",
        "spaced200_net",
        "walltime_nonet",
        "same_time",
        "profiles_serial",
        "up_smpi_compute_only",
        "up_smpi_mixed_comp_comm",
        "up_walltime_smpi",
    ],
)
def test_decisions_for_recorded_messages_of_the_real_batsim_are_valid(name: str, shared_data: Path) -> None:
    recording, endpoint = Recording(shared_data, name), free_endpoint()
    arguments, inputs = recording.arguments, recording.folder / "inputs"
    batsim_replay = ReplayingBatsim(endpoint, recording.messages)
    batsim_replay.start()

    run = batkube.run(
        workload=inputs / arguments[arguments.index("-w") + 1],
        platform=inputs / arguments[arguments.index("-p") + 1],
        engine=f"batsim:{endpoint}",
        watchdog="30s",
    )

    batsim_replay.join(10)
    assert len(batsim_replay.replies) == len(recording.messages)
    _check_decisions(recording.messages, batsim_replay.replies)
    states = {
        event["data"]["job_id"]: event["data"]["job_state"] for event in _events(recording.messages, "JOB_COMPLETED")
    }
    assert {f"w0!{row['job_id']}": row["final_state"] for row in run.jobs.to_dict("records")} == states


def _events(messages: list[str], kind: str) -> list[dict[str, Any]]:
    return [event for text in messages for event in json.loads(text)["events"] if event["type"] == kind]


def _check_decisions(messages: list[str], replies: list[dict[str, Any]]) -> None:
    """Assert that each job is executed once, after its submission, on machines that are free then."""
    waiting: dict[str, int] = {}
    running: dict[str, set[int]] = {}
    for text, reply in zip(messages, replies, strict=True):
        message = json.loads(text)
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                waiting[data["job_id"]] = data["job"]["res"]
            elif event["type"] == "JOB_COMPLETED":
                del running[data["job_id"]]
        assert reply["now"] >= message["now"]
        for event in reply["events"]:
            data = event["data"]
            assert event["type"] == "EXECUTE_JOB"
            machines = set(members(parse_intervals(data["alloc"])))
            assert len(machines) == waiting.pop(data["job_id"])
            assert not any(machines & others for others in running.values())
            running[data["job_id"]] = machines
    assert not waiting
    assert not running


# Failures


def test_a_missing_batsim_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InputError, match="no `batsim` on the PATH") as error:
        batkube.run(workload=workload_file(tmp_path, EIGHT_JOBS), platform=platform_file(tmp_path, 4), engine="batsim")

    assert "coming-from-batsim.md" in str(error.value)


@pytest.mark.usefixtures("own_batsim")
def test_a_platform_that_is_not_a_simgrid_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Batsim cannot read the platform '4x1'"):
        batkube.run(workload=workload_file(tmp_path, EIGHT_JOBS), platform="4x1", engine="batsim")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"engine": "simgrid"}, "'simgrid' is not an engine"),
        ({"engine": "batsim:28000"}, "'batsim:28000' is not an engine"),
        ({"engine": "batsim", "scheduler": "batsim:tcp://127.0.0.1:1"}, "can connect to Batsim directly"),
        ({"engine": "batsim", "energy": True}, "cannot be measured here"),
        ({"engine": "batsim", "scheduler": "kube-scheduler", "time": "paced"}, "does not support paced time"),
    ],
)
def test_combinations_that_batsim_does_not_support_are_rejected(
    keys: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=problem):
        batkube.run(workload=workload_file(tmp_path, EIGHT_JOBS), platform="4x1", **keys)


def test_a_batsim_that_exits_is_reported_with_its_last_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "echo cannot read this; exit 3")

    with pytest.raises(RunFailed, match=r"(?s)batsim ended with exit code 3 .*cannot read this"):
        batkube.run(workload=workload_file(tmp_path, EIGHT_JOBS), platform=platform_file(tmp_path, 4), engine="batsim")


def test_without_a_batsim_at_the_endpoint_the_run_fails_after_the_timeout(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="no message from Batsim"):
        batkube.run(
            workload=workload_file(tmp_path, EIGHT_JOBS),
            platform="4x1",
            engine=f"batsim:{free_endpoint()}",
            watchdog="300ms",
        )


def _simulation_begins(*machines: str) -> str:
    resources = [{"id": number, "name": name} for number, name in enumerate(machines)]
    data = {"compute_resources": resources, "allow_compute_sharing": False}
    return json.dumps({"now": 0, "events": [{"timestamp": 0, "type": "SIMULATION_BEGINS", "data": data}]})


def _message(kind: str, **data: object) -> str:
    return json.dumps({"now": 1, "events": [{"timestamp": 1, "type": kind, "data": data}]})


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([_simulation_begins("other")], "Batsim has no machine 'node0'"),
        (
            [_simulation_begins(*(f"node{n}" for n in range(4))), _message("JOB_SUBMITTED", job_id="w7!1")],
            "submits the job 'w7!1'",
        ),
        (
            [_simulation_begins(*(f"node{n}" for n in range(4))), _message("SIMULATION_ENDS")],
            "without submitting 8 jobs",
        ),
        (["not a message"], "not of its protocol"),
    ],
)
def test_a_batsim_with_another_simulation_is_rejected(messages: list[str], problem: str, tmp_path: Path) -> None:
    endpoint = free_endpoint()
    batsim_replay = ReplayingBatsim(endpoint, messages)
    batsim_replay.start()

    with pytest.raises(RunFailed, match=problem):
        batkube.run(
            workload=workload_file(tmp_path, EIGHT_JOBS),
            platform=platform_file(tmp_path, 4),
            engine=f"batsim:{endpoint}",
            watchdog="20s",
        )
