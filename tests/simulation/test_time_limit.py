"""Policies that never end: a time limit stops them, and keeps what was computed."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import threading
from pathlib import Path

import pytest
from tests.commands import EXPERIMENT, RUN, WORKLOAD, run_batkube, write_study

import batkube
from batkube.kernel.errors import InputError, RunFailed

POLICIES = """
from batkube.policies.interface import Policy, Start

class Endless(Policy):
    def decide(self, view):
        for job in view.queue:
            while job.name == "1":
                pass
            yield Start(job, view.free.fit(job))

class EndlessFromTheBeginning(Policy):
    def begin(self, machines, rng):
        while True:
            pass
    def decide(self, view):
        yield

class Deaf(Policy):
    def decide(self, view):
        while True:
            try:
                while True:  # what comes between two rounds is caught, too
                    sum(range(100))
            except BaseException:
                pass
        yield
"""


def policy(name: str) -> str:
    return f"policy:./mine.py:{name}"


def test_an_endless_policy_is_stopped_at_its_loop_and_its_results_are_kept(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=POLICIES)

    result = run_batkube(tmp_path, *RUN, "--scheduler", policy("Endless"), "--time-limit", "500ms")

    assert result.returncode == 1
    told, kept = result.stderr.splitlines()
    assert re.fullmatch(
        r"failed: stopped after 0\.5 s of real time, its time limit, at 1 s of virtual time, in mine\.py:[78] \(.*\)",
        told,
    )
    assert kept == "  what was computed until then is in out"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["result"] == "failed"
    with (tmp_path / "out" / "jobs.csv").open() as file:
        assert [row["job_id"] for row in csv.DictReader(file)] == ["0"]


def test_a_policy_whose_begin_never_returns_is_stopped_and_located(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=POLICIES)

    result = run_batkube(tmp_path, *RUN, "--scheduler", policy("EndlessFromTheBeginning"), "--time-limit", "0.5")

    assert result.returncode == 1
    assert result.stderr.startswith(
        "failed: stopped after 0.5 s of real time, its time limit, at 0 s of virtual time, in mine.py:"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.yaml", "mine.py", "out", "w.json"]


def test_a_policy_that_catches_everything_is_ended_with_its_process(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=POLICIES)

    result = run_batkube(tmp_path, *RUN, "--scheduler", policy("Deaf"), "--time-limit", "500ms")

    assert result.returncode == 1
    assert "its time limit, and nothing is kept: " in result.stderr
    assert "mine.py:" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_time_limit_fails_one_run_of_an_experiment_and_a_longer_limit_resumes_it(tmp_path: Path) -> None:
    write_study(tmp_path, "policy:fcfs", policy("Endless"), policy_file=POLICIES)

    first = run_batkube(tmp_path, *EXPERIMENT, "--time-limit", "1s", "--quiet")
    runs = sorted(path.name for path in (tmp_path / "out" / "runs").iterdir())
    again = run_batkube(tmp_path, *EXPERIMENT, "--time-limit", "2s", "--retry-failed", "--quiet")

    assert (first.returncode, first.stdout) == (1, "done=1\nfailed=1\n")
    assert "stopped after 1 s of real time, its time limit, at 1 s of virtual time" in first.stderr
    assert (again.returncode, again.stdout) == (1, "done=1\nfailed=1\n")
    assert "stopped after 2 s of real time" in again.stderr
    assert sorted(path.name for path in (tmp_path / "out" / "runs").iterdir()) == runs


def test_a_limit_that_is_not_reached_changes_neither_results_nor_names(tmp_path: Path) -> None:
    names, digests = [], []
    for number, limit in enumerate(([], ["--time-limit", "1h"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_study(folder, "policy:fcfs", "policy:easy")
        assert run_batkube(folder, *EXPERIMENT, *limit).returncode == 0
        names.append(sorted(path.name for path in (folder / "out" / "runs").iterdir()))
        digests.append((folder / "out" / "results.csv").read_bytes())

    assert names[0] == names[1]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("limit", ["0", "-1", "soon", "1e99"])
def test_invalid_durations_are_rejected(tmp_path: Path, limit: str) -> None:
    write_study(tmp_path)

    with pytest.raises(InputError, match="time-limit"):
        batkube.run(workload=tmp_path / "w.json", platform="2x1", out=tmp_path / "out", time_limit=limit)


def test_an_experiment_rejects_an_invalid_limit_before_anything_runs(tmp_path: Path) -> None:
    write_study(tmp_path, "policy:fcfs")

    result = run_batkube(tmp_path, *EXPERIMENT, "--time-limit", "soon")

    assert result.returncode == 2
    assert "time-limit: 'soon' is not a duration" in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_argument_of_the_python_interface_leaves_no_alarm_behind(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=POLICIES)
    given = {"workload": tmp_path / "w.json", "platform": "2x1", "out": tmp_path / "out"}
    before = signal.getsignal(signal.SIGALRM)

    with pytest.raises(RunFailed, match=r"stopped after 0\.3 s of real time"):
        batkube.run(**given, scheduler=f"policy:{tmp_path / 'mine.py'}:Endless", time_limit=0.3)

    assert batkube.run(**given, force=True, time_limit="1h").jobs.shape[0] == len(WORKLOAD["jobs"])  # type: ignore[arg-type]
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_limit_outside_of_the_main_thread_is_rejected(tmp_path: Path) -> None:
    write_study(tmp_path)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            batkube.run(workload=tmp_path / "w.json", platform="2x1", out=tmp_path / "out", time_limit="1h")
        except InputError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert "main thread" in str(raised[0])
    assert "out" not in os.listdir(tmp_path)
