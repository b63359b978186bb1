"""`batkube experiment`: killed, interrupted, resumed, and with invalid options."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.experiments.conftest import SIMULATED, Study

from batkube.cli.main import main

#: First come, first served, once the file `hold` is removed.
PATIENT = """
import pathlib, time
from batkube.policies.interface import Policy, Start
class Patient(Policy):
    def decide(self, view):
        while pathlib.Path("hold").exists():
            time.sleep(0.01)
        for job in view.queue:
            place = view.free.fit(job)
            if place is None:
                return
            yield Start(job, place)
"""
CRASHING = """
import os
from batkube.policies.interface import Policy
class Crashing(Policy):
    def decide(self, view):
        os.abort()
"""
SCHEDULERS = ["policy:fcfs", "policy:./patient.py:Patient", "policy:sjf"]


def start(study: Study, *arguments: str) -> subprocess.Popen[str]:
    """Start the command on the study's experiment file, in the study's folder."""
    command = [
        sys.executable,
        "-m",
        "batkube",
        "experiment",
        "experiment.yaml",
        "--jobs",
        "2",
        "--no-report",
        *arguments,
    ]
    # Its code may change while the tests run.
    command.append("--keep-finished")
    return subprocess.Popen(command, cwd=study.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(study: Study, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    process = start(study, *arguments)
    out, err = process.communicate(timeout=600)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(30_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("the condition did not become true")


def finished_runs(out: Path) -> list[Path]:
    return sorted(path.parent for path in out.glob("runs/[!.]*/manifest.json"))


def partial_folders(out: Path) -> list[Path]:
    return sorted(out.glob("runs/.*.partial-*"))


@pytest.fixture
def blocked_study(study: Study) -> Study:
    """An experiment of twelve runs, of which four end and the next two wait until the file `hold` is removed."""
    (study.folder / "patient.py").write_text(PATIENT)
    study.file(axes={"scheduler": SCHEDULERS}, seeds=4)
    (study.folder / "hold").touch()
    return study


def wait_until_two_runs_wait(study: Study, process: subprocess.Popen[str]) -> None:
    # Runs that have just ended may still have a partial folder.
    def waiting() -> int:
        return sum("Patient" in path.name for path in partial_folders(study.out))

    def condition() -> bool:
        assert process.poll() is None, f"it ended early: {process.communicate()}"
        return len(finished_runs(study.out)) == 4 and waiting() == 2

    wait_until(condition)


def wait_for_line(process: subprocess.Popen[str], word: str) -> None:
    """Read the error output of the command until a line contains the word."""
    assert process.stderr is not None
    while word not in (line := process.stderr.readline()):
        assert line, f"it ended without {word!r}"


def test_a_killed_and_resumed_experiment_gives_the_same_bytes(blocked_study: Study) -> None:
    process = start(blocked_study, "--out", "out")
    wait_until_two_runs_wait(blocked_study, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    times_ns = {folder: (folder / "manifest.json").stat().st_mtime_ns for folder in finished_runs(blocked_study.out)}
    (blocked_study.folder / "hold").unlink()

    again = finish(blocked_study, "--out", "out")
    uninterrupted_end = finish(blocked_study, "--out", "uninterrupted")

    assert (again.returncode, uninterrupted_end.returncode) == (0, 0)
    assert len(times_ns) == 4
    for folder, written_ns in times_ns.items():
        assert (folder / "manifest.json").stat().st_mtime_ns == written_ns, "a finished run was repeated"
    assert not partial_folders(blocked_study.out)
    uninterrupted = blocked_study.folder / "uninterrupted"
    assert (blocked_study.out / "results.csv").read_bytes() == (uninterrupted / "results.csv").read_bytes()
    assert [path.name for path in finished_runs(blocked_study.out)] == [
        path.name for path in finished_runs(uninterrupted)
    ]
    for folder in finished_runs(blocked_study.out):
        for name in SIMULATED:
            assert (folder / name).read_bytes() == (uninterrupted / "runs" / folder.name / name).read_bytes()


def test_an_interrupted_experiment_finishes_its_runs_and_explains_how_to_resume(blocked_study: Study) -> None:
    process = start(blocked_study, "--out", "out")
    wait_until_two_runs_wait(blocked_study, process)
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "stopping")
    (blocked_study.folder / "hold").unlink()
    _, err = process.communicate(timeout=300)

    assert process.returncode == 130
    assert "6 of 12 runs are finished and kept in out" in err
    assert "resume with: batkube experiment experiment.yaml --out out --jobs 2 --keep-finished" in err
    assert "Traceback" not in err
    assert len((blocked_study.out / "results.csv").read_text().splitlines()) == 7
    assert len(finished_runs(blocked_study.out)) == 6

    assert finish(blocked_study, "--out", "out").returncode == 0
    assert len(finished_runs(blocked_study.out)) == 12


def test_a_second_interrupt_kills_the_runs(blocked_study: Study) -> None:
    process = start(blocked_study, "--out", "out")
    wait_until_two_runs_wait(blocked_study, process)
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "stopping")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)

    assert process.returncode == 130
    assert "4 of 12 runs are finished" in err
    assert "Traceback" not in err
    assert [
        json.loads((folder / "manifest.json").read_text())["result"] for folder in finished_runs(blocked_study.out)
    ] == ["completed"] * 4


def test_a_run_that_crashes_its_process_is_reported_at_the_end_and_the_others_complete(study: Study) -> None:
    (study.folder / "crashing.py").write_text(CRASHING)
    study.file(axes={"scheduler": ["policy:fcfs", "policy:./crashing.py:Crashing", "policy:sjf", "policy:easy"]})

    result = finish(study, "--out", "out")

    assert result.returncode == 1
    assert result.stdout.startswith("3 of 4 runs done; results in out/results.csv\n")
    assert "failed: crashing.py-Crashing-" in result.stderr
    assert "1 of 4 runs failed" in result.stderr
    assert "was killed by SIGABRT" in result.stderr
    assert "Fatal Python error: Aborted" in result.stderr
    states = [line.split(",")[4] for line in (study.out / "results.csv").read_text().splitlines()[1:]]
    assert states == ["done", "failed", "done", "done"]


def run(study: Study, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process, and return its exit code."""
    monkeypatch.chdir(study.folder)
    monkeypatch.setattr(sys, "argv", ["batkube", "experiment", *arguments])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_a_dry_run_lists_the_runs_and_executes_none(
    study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study.file(axes={"scheduler": ["policy:fcfs", "policy:sjf"]}, seeds=2)

    assert run(study, monkeypatch, "experiment.yaml", "--out", "out", "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1] for line in lines] == [
        f"scheduler=policy:{policy}, seed={seed}" for policy in ("fcfs", "sjf") for seed in (0, 1)
    ]
    assert not study.out.exists()

    assert run(study, monkeypatch, "experiment.yaml", "--out", "out", "--limit", "1", "--quiet") == 0
    assert capsys.readouterr().out == "done=1\nfailed=0\n"
    run(study, monkeypatch, "experiment.yaml", "--out", "out", "--dry-run")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["done", "to", "to", "to"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["experiment.yaml"], "the output folder is missing\n  remedy: add --out DIR"),
        (["missing.yaml", "--out", "out"], "missing.yaml: cannot be read: No such file or directory"),
        (["w.json", "--out", "out"], "w.json: nb_res: is not a key of an experiment"),
        (["experiment.yaml", "--out", "w.json"], "w.json: is a file, not a folder"),
        (["experiment.yaml", "--out", "."], ".: exists and is not the folder of an experiment"),
        (["experiment.yaml", "--out", "out", "--executor", "dask"], "there is no executor 'dask'"),
    ],
)
def test_invalid_usage_causes_one_message_and_exit_code_2(
    study: Study,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    study.file()

    assert run(study, monkeypatch, *arguments) == 2

    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("error: ")
    assert not study.out.exists()
