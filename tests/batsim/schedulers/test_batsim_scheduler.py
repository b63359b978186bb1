"""Schedulers of Batsim's protocol on a simulated cluster receive the messages that they would receive from Batsim."""

from __future__ import annotations

import csv
import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.recordings import Recording, comparable

import batkube
from batkube.kernel.errors import InputError, RunFailed

#: A scheduler in a few lines; BODY handles an event.
SCHEDULER = """
import json, os, sys, time, zmq
socket = zmq.Context().socket(zmq.REP)
socket.bind(os.environ["BATSIM_ENDPOINT"])
while True:
    message = json.loads(socket.recv())
    kinds = [event["type"] for event in message["events"]]
    reply = {"now": message["now"], "events": []}
    def send(kind, **data):
        reply["events"].append({"timestamp": message["now"], "type": kind, "data": data})
    for event in message["events"]:
        data = event["data"]
        BODY
    socket.send_string(json.dumps(reply))
    if "SIMULATION_ENDS" in kinds:
        break
"""
EXECUTES_EACH = """if event["type"] == "JOB_SUBMITTED":
            send("EXECUTE_JOB", job_id=data["job_id"], alloc=str(int(data["job_id"].split("!")[1])))"""
FOUR_JOBS = {
    "nb_res": 4,
    "jobs": [{"id": str(number), "subtime": number, "res": 1, "profile": "p"} for number in range(4)],
    "profiles": {"p": {"type": "delay", "delay": 10}},
}


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Four jobs of ten seconds, a second apart."""
    path = tmp_path / "four.json"
    path.write_text(json.dumps(FOUR_JOBS))
    return path


def scheduler(folder: Path, body: str) -> str:
    """Return the `--scheduler` value of a scheduler that runs `body` for each event."""
    path = folder / "scheduler.py"
    path.write_text(SCHEDULER.replace("BODY", body))
    return f"batsim:{sys.executable} {path}"


@pytest.mark.parametrize(
    "name", ["burst200", "spaced200", "call_me_later", "same_time", "err_BadNowPast", "kill_early", "walltime_nonet"]
)
def test_the_recorded_scheduler_receives_the_same_messages_from_our_cluster_as_from_batsim(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    recording = Recording(shared_data, name)
    arguments = recording.arguments
    inputs, log = recording.folder / "inputs", tmp_path / "messages.jsonl"
    command = f"{sys.executable} {recording.folder / 'sched.py'} --policy {recording.policy} --log {log}"

    batkube.run(
        workload=inputs / arguments[arguments.index("-w") + 1],
        platform=inputs / arguments[arguments.index("-p") + 1],
        scheduler=f"batsim:{command} --endpoint {{endpoint}}",
        out=tmp_path / "out",
    )

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    ours = [line["raw"] for line in lines if line["dir"] == "batsim->sched"]
    assert [comparable(text) for text in ours[1:]] == [comparable(text) for text in recording.messages[1:]]


def test_jobs_run_on_the_allocated_machines(workload: Path, tmp_path: Path) -> None:
    run = batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, EXECUTES_EACH))

    assert list(run.jobs["allocated_resources"].astype(str)) == ["0", "1", "2", "3"]
    assert list(run.jobs["finish_time"]) == [10, 11, 12, 13]


def test_a_killed_job_has_ended_and_its_progress_is_reported(workload: Path, tmp_path: Path) -> None:
    received = tmp_path / "killed.json"
    body = f"""if event["type"] == "JOB_SUBMITTED":
            send("EXECUTE_JOB", job_id=data["job_id"], alloc=data["job_id"].split("!")[1])
            if data["job_id"] == "w0!0":
                send("CALL_ME_LATER", timestamp=5)
        if event["type"] == "REQUESTED_CALL":
            send("KILL_JOB", job_ids=["w0!0"])
        if event["type"] == "JOB_KILLED":
            open({str(received)!r}, "w").write(json.dumps(data))"""

    run = batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, body))

    first = run.jobs.iloc[0]
    assert (first["final_state"], first["finish_time"]) == ("COMPLETED_KILLED", 5)
    killed = json.loads(received.read_text())
    assert killed == {"job_ids": ["w0!0"], "job_progress": {"w0!0": {"profile_name": "p", "progress": 0.5}}}


def test_a_kill_is_reported_in_one_message_and_its_reply_may_use_the_machine(workload: Path, tmp_path: Path) -> None:
    """The reply to a call at 5 s kills a job; the end and the kill are reported in one message, as by Batsim."""
    received = tmp_path / "received"
    body = f"""if event["type"] == "SIMULATION_BEGINS":
            send("CALL_ME_LATER", timestamp=5)
        if data.get("job_id") == "w0!0" and event["type"] == "JOB_SUBMITTED":
            send("EXECUTE_JOB", job_id="w0!0", alloc="0-0")
        if event["type"] == "REQUESTED_CALL":
            send("KILL_JOB", job_ids=["w0!0"])
        if event["type"] == "JOB_KILLED":
            for number in (1, 2, 3):
                send("EXECUTE_JOB", job_id=f"w0!{{number}}", alloc=str(number - 1))
        if message["now"] == 5 and event is message["events"][-1]:
            open({str(received)!r}, "a").write(" ".join(kinds) + "\\n")"""

    run = batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, body))

    assert received.read_text().splitlines() == ["REQUESTED_CALL", "JOB_COMPLETED JOB_KILLED"]
    assert list(run.jobs["starting_time"]) == [0, 5, 5, 5]
    assert list(run.jobs["allocated_resources"].astype(str)) == ["0", "0", "1", "2"]


def test_a_kill_at_the_end_of_a_job_has_no_effect(workload: Path, tmp_path: Path) -> None:
    """The reply to the message at 3 s kills a job at 10 s, when it ends by itself."""
    body = """if event["type"] == "JOB_SUBMITTED":
            send("EXECUTE_JOB", job_id=data["job_id"], alloc=data["job_id"].split("!")[1])
            if data["job_id"] == "w0!3":
                message["now"] = reply["now"] = 10
                send("KILL_JOB", job_ids=["w0!0"])"""

    run = batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, body))

    assert list(run.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"] * 4


POWER = """if event["type"] == "JOB_SUBMITTED":
            send("EXECUTE_JOB", job_id=data["job_id"], alloc=data["job_id"].split("!")[1])
        if event["type"] == "SIMULATION_BEGINS":
            send(DECISION)
        if event["type"] == "ANSWER":
            open(PATH, "w").write(json.dumps(data))"""
WATTS = '<prop id="wattage_per_state" value="30:30:100"/>'


def test_consumed_energy_is_reported_only_with_energy_accounting(workload: Path, tmp_path: Path) -> None:
    answer, platform = tmp_path / "answer.json", silent_platform(tmp_path, 4, inside=WATTS)
    query = POWER.replace("PATH", repr(str(answer))).replace("DECISION", '"QUERY", requests={"consumed_energy": {}}')

    batkube.run(workload=workload, platform=platform, scheduler=scheduler(tmp_path, query), energy=True)
    assert json.loads(answer.read_text()) == {"consumed_energy": 0.0}
    with pytest.raises(RunFailed, match=r"QUERY: .* add --energy"):
        batkube.run(workload=workload, platform=platform, scheduler=scheduler(tmp_path, query))


#: Two speeds and a sleep state, with transitions of 5 s into it and 10 s out of it.
SPEEDS = 'speed="1Gf, 0.5Gf, 1f, 0.2f, 0.1f"'
SLEEP_WATTS = (
    '<prop id="wattage_per_state" value="30:30:100, 20:20:60, 9:9:9, 125:125:125, 101:101:101"/>'
    '<prop id="sleep_pstates" value="2:3:4"/>'
)
#: Machines 1 to 3 sleep until 20 s; then the queued jobs are executed.
SLEEPS = """if event["type"] != "SIMULATION_BEGINS":
            open(PATH, "a").write(json.dumps([event["timestamp"], event["type"], data]) + "\\n")
        if event["type"] == "SIMULATION_BEGINS":
            send("SET_RESOURCE_STATE", resources="1-3", state="2")
            send("CALL_ME_LATER", timestamp=20)
        if event["type"] == "REQUESTED_CALL":
            send("SET_RESOURCE_STATE", resources="1-3", state="0")
        if event["type"] == "JOB_SUBMITTED" and data["job_id"] == "w0!0":
            send("EXECUTE_JOB", job_id="w0!0", alloc="0")
        if event["type"] == "RESOURCE_STATE_CHANGED" and data["state"] == "0":
            for number in (1, 2, 3):
                send("EXECUTE_JOB", job_id=f"w0!{number}", alloc=str(number))"""


def test_machines_that_the_scheduler_switches_sleep_and_wake_up_as_in_batsim(workload: Path, tmp_path: Path) -> None:
    """The cluster and `batkube batsim -E` send the same messages to the scheduler, and the energy is the same."""
    platform = silent_platform(tmp_path, 4, more=SPEEDS, inside=SLEEP_WATTS)
    received = {name: tmp_path / f"{name}.jsonl" for name in ("cluster", "batsim")}

    def scheduler_of(name: str) -> str:
        return scheduler(tmp_path, SLEEPS.replace("PATH", repr(str(received[name]))))

    run = batkube.run(
        workload=workload, platform=platform, scheduler=scheduler_of("cluster"), energy=True, out=tmp_path / "out"
    )
    run_our_batsim(tmp_path, scheduler_of("batsim"), "-p", str(platform), "-w", str(workload), "-E")

    events = {name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in received.items()}
    assert events["cluster"] == events["batsim"]
    changes = [event for event in events["cluster"] if event[1] == "RESOURCE_STATE_CHANGED"]
    assert changes == [
        [5, "RESOURCE_STATE_CHANGED", {"resources": "1-3", "state": "2"}],
        [30, "RESOURCE_STATE_CHANGED", {"resources": "1-3", "state": "0"}],
    ]
    assert list(run.jobs["starting_time"]) == [0, 30, 30, 30]
    ours, theirs = (
        last_joules(path) for path in (tmp_path / "out" / "consumed_energy.csv", tmp_path / "b_consumed_energy.csv")
    )
    assert ours == pytest.approx(theirs, rel=1e-9)
    with (tmp_path / "out" / "machine_states.csv").open() as file:
        assert max(int(row["nb_sleeping"]) for row in csv.DictReader(file)) == 3


def run_our_batsim(folder: Path, scheduler: str, *arguments: str) -> None:
    """Run `batkube batsim` with a scheduler."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    command = shlex.split(scheduler.removeprefix("batsim:"))
    process = subprocess.Popen(command, env=os.environ | {"BATSIM_ENDPOINT": endpoint})
    try:
        batsim = [sys.executable, "-m", "batkube", "batsim", *arguments, "-s", endpoint, "-e", str(folder / "b"), "-q"]
        done = subprocess.run(batsim, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()
        process.wait()


def last_joules(path: Path) -> float:
    """Return the final energy of all machines."""
    with path.open() as file:
        return float(list(csv.DictReader(file))[-1]["energy"])


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        (
            '"SET_RESOURCE_STATE", resources="1-2", state="1"',
            "from speed 0 to 1: on a cluster machines go to their first",
        ),
        ('"SET_RESOURCE_STATE", resources="1-2", state="3"', "from pstate 0 to 3 is forbidden"),
    ],
)
def test_switches_that_a_cluster_does_not_support_are_rejected(
    workload: Path, tmp_path: Path, decision: str, problem: str
) -> None:
    body = POWER.replace("PATH", "''").replace("DECISION", decision)
    platform = silent_platform(tmp_path, 4, more=SPEEDS, inside=SLEEP_WATTS)

    with pytest.raises(RunFailed, match=problem):
        batkube.run(workload=workload, platform=platform, scheduler=scheduler(tmp_path, body), energy=True)
    with pytest.raises(RunFailed, match=r"SET_RESOURCE_STATE: .* add --energy"):
        batkube.run(workload=workload, platform=platform, scheduler=scheduler(tmp_path, body))


#: Jobs that send a message and wait for the answer, and a job that polls once.
MESSAGES = {
    "nb_res": 4,
    "jobs": [
        {"id": "0", "subtime": 0, "res": 1, "profile": "talk"},
        {"id": "1", "subtime": 1, "res": 1, "profile": "talk"},
        {"id": "2", "subtime": 2, "res": 1, "profile": "glance"},
        {"id": "3", "subtime": 3, "res": 1, "profile": "short"},
        {"id": "4", "subtime": 60, "res": 1, "profile": "long"},
    ],
    "profiles": {
        "talk": {"type": "composed", "repeat": 1, "seq": ["hello", "hear"]},
        "hello": {"type": "send", "msg": {"hello": "world"}, "sleeptime": 0.5},
        "hear": {"type": "recv", "regex": "yes.*", "success": "short", "failure": "long", "polltime": 0.25},
        "glance": {"type": "recv", "regex": ".*", "success": "long", "failure": "long", "timeout": "short"},
        "short": {"type": "delay", "delay": 5},
        "long": {"type": "delay", "delay": 50},
    },
}
ANSWERS = """if event["type"] != "SIMULATION_BEGINS":
            open(PATH, "a").write(json.dumps([event["timestamp"], event["type"], data]) + "\\n")
        if event["type"] == "JOB_SUBMITTED":
            number = int(data["job_id"].split("!")[1])
            send("EXECUTE_JOB", job_id=data["job_id"], alloc=str(number % 4))
        if event["type"] == "SIMULATION_BEGINS":
            send("CALL_ME_LATER", timestamp=7.1)
        if event["type"] == "REQUESTED_CALL":
            send("TO_JOB_MSG", job_id="w0!0", msg="yes, please")
            send("TO_JOB_MSG", job_id="w0!1", msg="no")"""


def test_jobs_and_the_scheduler_exchange_messages_as_in_batsim(tmp_path: Path) -> None:
    """The events and their dates are those of `batkube batsim`; each job runs the profile that its answer selects."""
    workload = tmp_path / "talk.json"
    workload.write_text(json.dumps(MESSAGES))
    platform = silent_platform(tmp_path, 4, inside=WATTS)
    received = {name: tmp_path / f"{name}.jsonl" for name in ("cluster", "batsim")}

    def scheduler_of(name: str) -> str:
        return scheduler(tmp_path, ANSWERS.replace("PATH", repr(str(received[name]))))

    run = batkube.run(workload=workload, platform=platform, scheduler=scheduler_of("cluster"), out=tmp_path / "out")
    run_our_batsim(tmp_path, scheduler_of("batsim"), "-p", str(platform), "-w", str(workload))

    events = {name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in received.items()}
    assert events["cluster"] == events["batsim"]
    messages = [(at, data["job_id"]) for at, kind, data in events["cluster"] if kind == "FROM_JOB_MSG"]
    assert messages == [(0, "w0!0"), (1, "w0!1")]
    # They poll every quarter of a second after sending: at 7.25 s both have an answer.
    assert run.jobs.set_index("job_id")["finish_time"].to_dict() == {"0": 12.25, "1": 57.25, "2": 7, "3": 8, "4": 110}


def test_jobs_that_wait_for_messages_of_a_policy_are_rejected(tmp_path: Path) -> None:
    workload = tmp_path / "talk.json"
    workload.write_text(json.dumps(MESSAGES))

    with pytest.raises(InputError, match="only schedulers of Batsim's protocol send any"):
        batkube.run(workload=workload, platform=silent_platform(tmp_path, 4, inside=WATTS))


@pytest.mark.parametrize("is_acknowledged", [True, False])
def test_jobs_that_the_scheduler_registers_are_executed(is_acknowledged: bool, workload: Path, tmp_path: Path) -> None:
    start = 'send("EXECUTE_JOB", job_id="dyn!a", alloc="3")'
    body = f"""if event["type"] == "JOB_SUBMITTED" and data["job_id"] == "dyn!a":
            {start}
        elif event["type"] == "JOB_SUBMITTED":
            send("EXECUTE_JOB", job_id=data["job_id"], alloc=data["job_id"].split("!")[1])
        if event["type"] == "NOTIFY":
            send("CALL_ME_LATER", timestamp=50)
        if event["type"] == "REQUESTED_CALL":
            send("REGISTER_PROFILE", workload_name="dyn", profile_name="q", profile={{"type": "delay", "delay": 7.5}})
            send("REGISTER_JOB", job_id="dyn!a", job={{"id": "dyn!a", "profile": "q", "res": 1, "subtime": 50}})
            send("NOTIFY", type="registration_finished")
            {"pass" if is_acknowledged else start}"""
    arguments = {"enable-dynamic-jobs": "true", "acknowledge-dynamic-jobs": str(is_acknowledged).lower()}

    run = batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, body), scheduler_args=arguments)

    dynamic = run.jobs[run.jobs["workload_name"] == "dyn"].iloc[0]
    assert (dynamic["job_id"], dynamic["starting_time"], dynamic["finish_time"]) == ("a", 50, 57.5)


def test_cordoned_machines_are_reported_and_their_jobs_continue(workload: Path, tmp_path: Path) -> None:
    received, events = tmp_path / "received", tmp_path / "events.txt"
    events.write_text(
        '{"timestamp": 2, "type": "machine_unavailable", "resources": "0-1"}\n'
        '{"timestamp": 6, "type": "machine_available", "resources": "0-1"}\n'
    )
    body = f"""if event["type"] == "JOB_SUBMITTED":
            send("EXECUTE_JOB", job_id=data["job_id"], alloc=data["job_id"].split("!")[1])
        if event["type"] == "NOTIFY" and "resources" in data:
            open({str(received)!r}, "a").write(f"{{event['timestamp']}} {{data['type']}} {{data['resources']}}\\n")"""

    run = batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, body), events=events)

    assert list(run.jobs["finish_time"]) == [10, 11, 12, 13]
    assert received.read_text().splitlines() == [
        "2.0 event_machine_unavailable 0-1",
        "6.0 event_machine_available 0-1",
    ]


FAULTS: Mapping[str, tuple[str, str]] = {
    "exits": ("sys.exit(3)", "ended with exit code 3 before the simulation was over"),
    "raises": ("raise RuntimeError('lost my mind')", "RuntimeError: lost my mind"),
    "invalid JSON": ("socket.send(b'{'); break", "Invalid JSON message: could not be parsed"),
    "unknown event": ("send('NO_SUCH_EVENT')", "unknown 'type' value 'NO_SUCH_EVENT'"),
    "unknown job": ("send('EXECUTE_JOB', job_id='w0!9', alloc='0')", "Cannot get job 'w0!9': it does not exist"),
    "unknown machine": (
        "send('EXECUTE_JOB', job_id='w0!0', alloc='99') if event['type'] == 'JOB_SUBMITTED' else None",
        "Cannot get machine 99: it does not exist",
    ),
    "does nothing": ("pass", "without an outcome"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_of_a_scheduler_fails_the_run_and_is_quoted(fault: str, workload: Path, tmp_path: Path) -> None:
    body, problem = FAULTS[fault]

    with pytest.raises(RunFailed) as failure:
        batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, body), out=tmp_path / "out")

    assert problem in str(failure.value)
    assert "what was computed until then" in str(failure.value)
    assert (tmp_path / "out" / "jobs.csv").exists()


def test_a_run_with_a_hanging_scheduler_fails_after_the_timeout(workload: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"no reply from the scheduler at .* for 1 s \(real time\)"):
        batkube.run(workload=workload, platform="4x1", scheduler=scheduler(tmp_path, "time.sleep(60)"), watchdog="1s")


def test_a_scheduler_that_cannot_be_started_is_an_input_error(workload: Path) -> None:
    with pytest.raises(InputError, match="cannot be started"):
        batkube.run(workload=workload, platform="4x1", scheduler="batsim:/no/such/program")


def test_whole_machines_cannot_be_shared(workload: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"enable-compute-sharing: jobs of this run get whole machines(.|\n)*requests"):
        batkube.run(
            workload=workload,
            platform="4x1",
            scheduler=scheduler(tmp_path, EXECUTES_EACH),
            scheduler_args={"enable-compute-sharing": "true"},
        )
