"""Peers that fail: they exit, hang, reply with invalid messages or late, or do not use the protocol.

The peers are a scheduler of `batkube batsim`, a scheduler of a run that listens at an endpoint, and a Batsim that is
the engine of a run. (`schedulers/test_batsim_scheduler.py` tests schedulers that a run starts itself.)
"""

from __future__ import annotations

import json
import socket as sockets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.batsim.platforms import silent_platform

import batkube
from batkube.batsim.protocol.zmq_sockets import free_endpoint
from batkube.batsim.simulator.run import SimulatorArguments, run_batsim
from batkube.kernel.errors import RunFailed

JOBS = {
    "nb_res": 4,
    "jobs": [{"id": str(number), "subtime": number, "res": 1, "profile": "p"} for number in range(4)],
    "profiles": {"p": {"type": "delay", "delay": 10}},
}
#: A scheduler that has a fault when the second job is submitted.
SCHEDULER = """
import json, os, sys, time, zmq
socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
while True:
    message = json.loads(socket.recv())
    events = []
    for event in message["events"]:
        if event["type"] == "JOB_SUBMITTED":
            number = event["data"]["job_id"].split("!")[1]
            if number == "1":
                FAULT
            data = {"job_id": event["data"]["job_id"], "alloc": number}
            events.append({"timestamp": message["now"], "type": "EXECUTE_JOB", "data": data})
    socket.send_string(json.dumps({"now": message["now"], "events": events}))
"""
#: A Batsim that has a fault after the first message.
BATSIM = """
import json, os, sys, time, zmq
socket = zmq.Context().socket(zmq.REQ)
socket.connect(sys.argv[1])
def send(kind, **data):
    socket.send_string(json.dumps({"now": 0, "events": [{"timestamp": 0, "type": kind, "data": data}]}))
resources = [{"id": number, "name": f"node{number}"} for number in range(4)]
send("SIMULATION_BEGINS", compute_resources=resources, allow_compute_sharing=False)
socket.recv()
FAULT
"""
EXIT, HANG = "os._exit(3)", "time.sleep(60)"
FAULTS = {
    "exits": (EXIT, "the scheduler at ENDPOINT disconnected without a reply to the last message"),
    "hangs": (HANG, r"no reply from the scheduler at ENDPOINT for 1 s \(real time\)"),
    "invalid JSON": ("socket.send(b'{'); continue", "Invalid JSON message: could not be parsed"),
    "an empty reply": ("socket.send(b''); time.sleep(60)", "Invalid JSON message: could not be parsed"),
    "bytes that are not text": (
        "socket.send(b'\\xff\\x00'); time.sleep(60)",
        "Invalid JSON message: could not be parsed",
    ),
    "several parts": (
        "socket.send_multipart([b'{\"now\":', b'1', b'}']); time.sleep(60)",
        "Invalid JSON message: no 'events' key",
    ),
    "a date that is not a number": ("message['now'] = 'soon'", "'now' value should be a number"),
    "a date out of range": ("message['now'] = 1e300", "'now' of message"),
    "a list": ("socket.send(b'[]'); time.sleep(60)", "not a JSON object"),
    "a decision after the reply": ("events.append({'timestamp': 99, 'type': 'NOTIFY', 'data': {}})", "event 0"),
    "an event of Batsim": (
        "events.append({'timestamp': 1, 'type': 'SIMULATION_ENDS', 'data': {}})",
        "unknown 'type' value 'SIMULATION_ENDS'",
    ),
}


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "workload.json"
    path.write_text(json.dumps(JOBS))
    return path


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    return silent_platform(tmp_path, 4, prefix="node")


@contextmanager
def peer(folder: Path, program: str, fault: str, endpoint: str) -> Iterator[None]:
    """Run a peer with a fault in a process, at an endpoint."""
    path = folder / "peer.py"
    path.write_text(program.replace("FAULT", fault))
    with subprocess.Popen([sys.executable, str(path), endpoint], stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("place", ["our Batsim", "our cluster"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_of_a_scheduler_is_reported_and_the_files_are_kept(
    fault: str, place: str, workload: Path, platform: Path, tmp_path: Path
) -> None:
    code, problem = FAULTS[fault]
    endpoint, out = free_endpoint(), tmp_path / "out"
    timeout_s = 1 if code == HANG else 60

    def run() -> None:
        if place == "our Batsim":
            run_batsim(SimulatorArguments(platform, [workload], endpoint, str(out), reply_timeout_ns=timeout_s * 10**9))
        else:
            name, watchdog = f"batsim:{endpoint}", f"{timeout_s}s"
            batkube.run(workload=workload, platform=platform, scheduler=name, out=out, watchdog=watchdog)

    with peer(tmp_path, SCHEDULER, code, endpoint), pytest.raises(RunFailed) as failure:
        run()

    failure.match(problem.replace("ENDPOINT", endpoint))
    failure.match("what was computed until then is in")
    assert (tmp_path / "out_jobs.csv" if place == "our Batsim" else out / "jobs.csv").exists()


def test_a_slow_scheduler_within_the_timeout_is_waited_for(workload: Path, platform: Path, tmp_path: Path) -> None:
    endpoint = free_endpoint()

    with peer(tmp_path, SCHEDULER, "time.sleep(0.5)", endpoint):
        run_batsim(
            SimulatorArguments(platform, [workload], endpoint, str(tmp_path / "out"), reply_timeout_ns=30 * 10**9)
        )

    assert len((tmp_path / "out_jobs.csv").read_text().splitlines()) == 5


def test_a_missing_scheduler_has_another_message_than_one_that_does_not_reply(workload: Path, platform: Path) -> None:
    endpoint = free_endpoint()

    with pytest.raises(RunFailed, match=rf"no scheduler listens at {endpoint}: no connection for 0.3 s \(real time\)"):
        batkube.run(workload=workload, platform=platform, scheduler=f"batsim:{endpoint}", watchdog="300ms")


def test_a_server_of_another_protocol_is_reported(workload: Path, platform: Path) -> None:
    """An HTTP server, for example, answers ZeroMQ's greeting with an error and closes the connection."""
    with sockets.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" + b"x" * 100)
                connection.recv(100)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(RunFailed, match="does not use ZeroMQ"):
            batkube.run(
                workload=workload, platform=platform, scheduler=f"batsim:tcp://127.0.0.1:{port}", watchdog="30s"
            )


ENGINE_FAULTS = {
    "exits": (EXIT, "the Batsim at ENDPOINT disconnected before the simulation was over"),
    "exits after a message": (
        "send('JOB_SUBMITTED', job_id='w0!0'); time.sleep(0.5); os._exit(3)",
        "the Batsim at ENDPOINT disconnected before the simulation was over",
    ),
    "hangs": (HANG, "no message from Batsim at ENDPOINT for 1 s"),
    "invalid JSON": (
        "socket.send(b'{'); socket.recv()",
        "not of its protocol: Invalid JSON message: could not be parsed",
    ),
    "several parts": ("socket.send_multipart([b'[', b']']); socket.recv()", "not of its protocol: .*not a JSON object"),
    "an unknown state": (
        "send('JOB_SUBMITTED', job_id='w0!0'); socket.recv(); send('JOB_COMPLETED', job_id='w0!0', "
        "job_state='COMPLETED_TWICE', return_code=0, alloc='0'); socket.recv()",
        "ended with the unknown state 'COMPLETED_TWICE'",
    ),
}


@pytest.mark.parametrize("fault", ENGINE_FAULTS)
def test_the_fault_of_a_batsim_is_reported(fault: str, workload: Path, platform: Path, tmp_path: Path) -> None:
    code, problem = ENGINE_FAULTS[fault]
    endpoint = free_endpoint()

    with peer(tmp_path, BATSIM, code, endpoint), pytest.raises(RunFailed) as failure:
        batkube.run(
            workload=workload,
            platform=platform,
            engine=f"batsim:{endpoint}",
            out=tmp_path / "out",
            watchdog="1s" if code == HANG else "60s",
        )

    failure.match(problem.replace("ENDPOINT", endpoint))
    assert (tmp_path / "out" / "jobs.csv").exists()
