"""SIGTERM and SIGINT shut `serve` down in an orderly way within seconds, whatever it is doing."""

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

#: A policy that never returns.
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
#: The time limit of a shutdown; it takes half a second on an idle machine.
SHUTDOWN_LIMIT_S = 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_shuts_down_while_a_policy_never_returns(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    arguments = ["--platform", "1x4,8Gi", "--scheduler", "policy:./endless.py:Endless"]
    with attacked(tmp_path, *arguments) as server, server.connect() as connection:
        connection.sendall(request("/api/v1/namespaces/default/pods", "POST", json.dumps(POD).encode()))
        while not (tmp_path / "busy").exists():
            time.sleep(0.01)
        code = server.end(number, within_s=SHUTDOWN_LIMIT_S)

    assert code == 0
    assert server.errors.read_text() == ""
    assert json.loads((server.out / "fidelity.json").read_text()) == []


def test_it_shuts_down_with_a_thousand_connections_that_do_not_read(tmp_path: Path) -> None:
    with attacked(tmp_path, "--bare") as server, contextlib.ExitStack() as stack:
        for number in range(1000):
            connection = stack.enter_context(server.connect())
            connection.setblocking(False)
            connection.send(request("/openapi/v2") * 20 if number % 2 else b"GET / HT")
        code = server.end(within_s=SHUTDOWN_LIMIT_S)

    assert code == 0
    assert server.errors.read_text() == ""


def test_repeated_signals_do_not_disturb_the_shutdown(tmp_path: Path) -> None:
    with attacked(tmp_path, "--bare") as server:
        deadline = time.monotonic() + SHUTDOWN_LIMIT_S
        while server.process.poll() is None and time.monotonic() < deadline:
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.0001)
        code = server.end(within_s=SHUTDOWN_LIMIT_S)

    assert code == 0
    assert server.errors.read_text() == ""
    assert json.loads((server.out / "fidelity.json").read_text()) == []


@pytest.mark.parametrize("moment_s", [0.5, 1.0, 1.5])
def test_it_shuts_down_during_its_start(tmp_path: Path, moment_s: float) -> None:
    command = [sys.executable, "-m", "batkube", "serve", "--out", "out", "--platform", "20000x4,8Gi"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(moment_s)
        process.terminate()
        _, errors = process.communicate(timeout=SHUTDOWN_LIMIT_S)

    # Before the handlers are installed, the signal ends Python itself; shells report 130 for SIGINT.
    assert process.returncode in (0, 130, -signal.SIGINT, -signal.SIGTERM)
    assert b"Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
