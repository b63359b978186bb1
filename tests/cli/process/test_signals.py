"""SIGINT, SIGTERM and SIGHUP: a run keeps its outputs so far, and no traceback is printed."""

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
#: Starts one job, prints a line, and waits.
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
def test_an_interrupted_run_keeps_its_outputs(tmp_path: Path, number: signal.Signals) -> None:
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


def interrupt_at_import(module: str) -> str:
    """Return a program that runs the command line, and is interrupted when `module` is imported."""
    return f"""
import os, signal, sys
class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{{}})
sys.meta_path.insert(0, Interrupter())
from batkube.cli.main import main
main()
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize(
    "module", ["typer", "batkube.cli.commands.compare", "batkube.outputs.measures.comparisons.run_comparison"]
)
def test_an_interrupt_outside_a_run_prints_one_word_and_exits_with_130(
    tmp_path: Path, module: str, number: str
) -> None:
    program = interrupt_at_import(module).format(number)
    arguments = ["compare", "a", "b"]

    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (result.returncode, result.stderr.strip()) == (130, "interrupted")


def test_an_interrupt_while_inputs_are_read_prints_one_word_and_exits_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["batkube", *COMMAND])
    monkeypatch.setattr("batkube.simulation.run.read_inputs", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)

    with pytest.raises(SystemExit) as stop:
        main()

    assert stop.value.code == 130
    assert capsys.readouterr().err.strip() == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["w.json"]
    assert signal.getsignal(signal.SIGTERM) is before
