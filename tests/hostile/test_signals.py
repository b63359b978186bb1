"""SIGTERM and SIGINT end `serve` soon, whatever it is at, and in good order."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostile.attacked import attacked, request

#: A scheduler that never comes to an end.
ENDLESS = """
from batkube.policies.interface import Policy
class Endless(Policy):
    def decide(self, view):
        open("busy", "w").close()
        while True:
            pass
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
#: On an idle machine it is half a second.
SOON_S = 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_the_middle_of_work_without_end(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    arguments = ["--platform", "1x4,8Gi", "--scheduler", "policy:./endless.py:Endless"]
    with attacked(tmp_path, *arguments) as server, server.connect() as connection:
        connection.sendall(request("/api/v1/namespaces/default/pods", "POST", json.dumps(POD).encode()))
        while not (tmp_path / "busy").exists():
            time.sleep(0.01)
        code = server.end(number, within_s=SOON_S)

    assert code == 0
    assert server.errors.read_text() == ""
    assert json.loads((server.out / "fidelity.json").read_text()) == []


def test_it_ends_with_a_thousand_connections_that_do_not_read(tmp_path: Path) -> None:
    with attacked(tmp_path, "--bare") as server, contextlib.ExitStack() as stack:
        for number in range(1000):
            connection = stack.enter_context(server.connect())
            connection.setblocking(False)
            connection.send(request("/openapi/v2") * 20 if number % 2 else b"GET / HT")
        code = server.end(within_s=SOON_S)

    assert code == 0
    assert server.errors.read_text() == ""


def test_being_asked_again_and_again_until_the_very_end_changes_nothing(tmp_path: Path) -> None:
    with attacked(tmp_path, "--bare") as server:
        deadline = time.monotonic() + SOON_S
        while server.process.poll() is None and time.monotonic() < deadline:
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.0001)
        code = server.end(within_s=SOON_S)

    assert code == 0
    assert server.errors.read_text() == ""
    assert json.loads((server.out / "fidelity.json").read_text()) == []


@pytest.mark.parametrize("moment_s", [0.5, 1.0, 1.5])
def test_it_ends_while_it_starts(tmp_path: Path, moment_s: float) -> None:
    command = [sys.executable, "-m", "batkube", "serve", "--out", "out", "--platform", "20000x4,8Gi"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(moment_s)
        process.terminate()
        _, errors = process.communicate(timeout=SOON_S)

    # Python itself may take the interruption for its own; shells show 130 for that, too.
    assert process.returncode in (0, 130, -signal.SIGINT, -signal.SIGTERM)
    assert b"Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
