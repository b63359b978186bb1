"""Ctrl-C, SIGTERM and SIGHUP: a run keeps what it computed, and nothing ends in a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from batkube.cli.main import main

WORKLOAD = {
    "nb_res": 2,
    "jobs": [{"id": str(number), "subtime": number, "res": 1, "profile": "d"} for number in range(4)],
    "profiles": {"d": {"type": "delay", "delay": 1}},
}
#: Starts one job and then says that it is there, and waits.
WAITING = """
import time
from batkube.policies.interface import Policy, Start
class Waiting(Policy):
    def decide(self, view):
        for job in view.queue:
            if job.name != "0":
                print("here", flush=True)
                time.sleep(60)
            yield Start(job, view.free.fit(job))
"""
COMMAND = ["run", "--workload", "w.json", "--platform", "2x1", "--out", "out"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_is_stopped_keeps_what_it_computed(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "waiting.py").write_text(WAITING)
    command = [sys.executable, "-m", "batkube", *COMMAND, "--scheduler", "policy:./waiting.py:Waiting"]

    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=30)

    assert process.returncode == 1
    assert err.startswith("failed: interrupted")
    assert "Traceback" not in err
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["result"] == "failed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "w.json", "waiting.py"]


def stop_at(moment: str) -> str:
    """Return a program that runs the command line and is stopped when `moment` is imported or called."""
    return f"""
import os, signal, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            os.kill(os.getpid(), signal.{{}})
sys.meta_path.insert(0, Stop())
from batkube.cli.main import main
main()
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize(
    "moment", ["typer", "batkube.cli.commands.compare", "batkube.outputs.measures.comparisons.run_comparison"]
)
def test_outside_a_run_it_is_one_word_and_130(tmp_path: Path, moment: str, number: str) -> None:
    program = stop_at(moment).format(number)
    arguments = ["compare", "a", "b"]

    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (result.returncode, result.stderr.strip()) == (130, "interrupted")


def test_while_inputs_are_read_it_is_one_word_and_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["batkube", *COMMAND])
    monkeypatch.setattr("batkube.simulation.run.read_inputs", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)

    with pytest.raises(SystemExit) as stopped:
        main()

    assert stopped.value.code == 130
    assert capsys.readouterr().err.strip() == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["w.json"]
    assert signal.getsignal(signal.SIGTERM) is before
