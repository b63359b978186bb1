"""Who is at the other end of the wire, and at fault: it dies, hangs, answers nonsense or late, or is somebody else.

Each fault at each place where there is a partner: a scheduler in front of `batkube batsim`, one of a run's cluster that
listens somewhere, and a Batsim that is a run's engine. (Schedulers that a run starts itself, whose last lines are told,
are in `test_cluster_as_batsim.py`.)
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
#: A scheduler that begins well, and at the arrival of the second job does what it is told to.
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
#: A Batsim that begins well and goes on as it is told to.
BATSIM = """
import json, os, sys, time, zmq
socket = zmq.Context().socket(zmq.REQ)
socket.connect(sys.argv[1])
def say(kind, **data):
    socket.send_string(json.dumps({"now": 0, "events": [{"timestamp": 0, "type": kind, "data": data}]}))
resources = [{"id": number, "name": f"node{number}"} for number in range(4)]
say("SIMULATION_BEGINS", compute_resources=resources, allow_compute_sharing=False)
socket.recv()
FAULT
"""
GOES, HANGS = "os._exit(3)", "time.sleep(60)"
FAULTS = {
    "goes": (GOES, "the scheduler at ENDPOINT has gone, and left a message without an answer"),
    "hangs": (HANGS, r"the scheduler at ENDPOINT has not answered for 1 s \(real time\)"),
    "no JSON": ("socket.send(b'{'); continue", "Invalid JSON message: could not be parsed"),
    "nothing": ("socket.send(b''); break", "Invalid JSON message: could not be parsed"),
    "bytes": ("socket.send(b'\\xff\\x00'); break", "Invalid JSON message: could not be parsed"),
    "parts": ("socket.send_multipart([b'{\"now\":', b'1', b'}']); break", "Invalid JSON message: no 'events' key"),
    "no number": ("message['now'] = 'soon'", "'now' value should be a number"),
    "no date": ("message['now'] = 1e300", "'now' of message"),
    "a list": ("socket.send(b'[]'); break", "not a JSON object"),
    "a decision before its time": ("events.append({'timestamp': 99, 'type': 'NOTIFY', 'data': {}})", "event 0"),
    "somebody else's word": (
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
def partner(folder: Path, program: str, fault: str, endpoint: str) -> Iterator[None]:
    """Somebody in a process of its own, at an endpoint."""
    path = folder / "partner.py"
    path.write_text(program.replace("FAULT", fault))
    with subprocess.Popen([sys.executable, str(path), endpoint], stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("place", ["our Batsim", "our cluster"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_scheduler_at_fault_is_told_and_what_was_computed_is_kept(
    fault: str, place: str, workload: Path, platform: Path, tmp_path: Path
) -> None:
    deed, complaint = FAULTS[fault]
    endpoint, out = free_endpoint(), tmp_path / "out"

    patience_s = 1 if deed == HANGS else 60

    def run() -> None:
        if place == "our Batsim":
            run_batsim(SimulatorArguments(platform, [workload], endpoint, str(out), patience_ns=patience_s * 10**9))
        else:
            name, watchdog = f"batsim:{endpoint}", f"{patience_s}s"
            batkube.run(workload=workload, platform=platform, scheduler=name, out=out, watchdog=watchdog)

    with partner(tmp_path, SCHEDULER, deed, endpoint), pytest.raises(RunFailed) as failure:
        run()

    failure.match(complaint.replace("ENDPOINT", endpoint))
    failure.match("what was computed until then is in")
    assert (tmp_path / "out_jobs.csv" if place == "our Batsim" else out / "jobs.csv").exists()


def test_a_scheduler_that_is_slow_but_not_too_slow_is_waited_for(
    workload: Path, platform: Path, tmp_path: Path
) -> None:
    endpoint = free_endpoint()

    with partner(tmp_path, SCHEDULER, "time.sleep(0.5)", endpoint):
        run_batsim(SimulatorArguments(platform, [workload], endpoint, str(tmp_path / "out"), patience_ns=30 * 10**9))

    assert len((tmp_path / "out_jobs.csv").read_text().splitlines()) == 5


def test_a_scheduler_that_is_not_there_is_told_from_one_that_does_not_answer(workload: Path, platform: Path) -> None:
    endpoint = free_endpoint()

    with pytest.raises(RunFailed, match=rf"no scheduler has listened at {endpoint} for 0.3 s \(real time\)"):
        batkube.run(workload=workload, platform=platform, scheduler=f"batsim:{endpoint}", watchdog="300ms")


def test_somebody_who_speaks_otherwise_is_told(workload: Path, platform: Path) -> None:
    """A server of HTTP, say: it answers a greeting that it does not understand, and hangs up."""
    with sockets.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" + b"x" * 100)
                connection.recv(100)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(RunFailed, match="does not speak ZeroMQ"):
            batkube.run(
                workload=workload, platform=platform, scheduler=f"batsim:tcp://127.0.0.1:{port}", watchdog="30s"
            )


ENGINE_FAULTS = {
    "goes": (GOES, "the Batsim that came to ENDPOINT has gone before its simulation was over"),
    "goes after a message": (
        "say('JOB_SUBMITTED', job_id='w0!0'); time.sleep(0.5); os._exit(3)",
        "the Batsim that came to ENDPOINT has gone before its simulation was over",
    ),
    "hangs": (HANGS, "no message from Batsim at ENDPOINT for 1 s"),
    "no JSON": ("socket.send(b'{'); socket.recv()", "not of its protocol: Invalid JSON message: could not be parsed"),
    "parts": ("socket.send_multipart([b'[', b']']); socket.recv()", "not of its protocol: .*not a JSON object"),
    "no end": (
        "say('JOB_SUBMITTED', job_id='w0!0'); socket.recv(); say('JOB_COMPLETED', job_id='w0!0', "
        "job_state='COMPLETED_TWICE', return_code=0, alloc='0'); socket.recv()",
        "ended as 'COMPLETED_TWICE', which is no end",
    ),
}


@pytest.mark.parametrize("fault", ENGINE_FAULTS)
def test_a_batsim_at_fault_is_told(fault: str, workload: Path, platform: Path, tmp_path: Path) -> None:
    deed, complaint = ENGINE_FAULTS[fault]
    endpoint = free_endpoint()

    with partner(tmp_path, BATSIM, deed, endpoint), pytest.raises(RunFailed) as failure:
        batkube.run(
            workload=workload,
            platform=platform,
            engine=f"batsim:{endpoint}",
            out=tmp_path / "out",
            watchdog="1s" if deed == HANGS else "60s",
        )

    failure.match(complaint.replace("ENDPOINT", endpoint))
    assert (tmp_path / "out" / "jobs.csv").exists()
