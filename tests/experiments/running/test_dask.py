"""Experiments on a real Dask cluster give the same bytes as local processes, even if workers die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cli.commands.test_experiment import wait_for_line
from tests.experiments.conftest import SIMULATED, Study
from tests.process_ends import wait_for_end

from batkube.cli.main import main

#: First come, first served, once the file `hold` is removed; until then it writes its process id. Paths are absolute,
#: because a run on a cluster has another current folder.
PATIENT = """
import os, pathlib, time
from batkube.policies.interface import Policy, Start
class Patient(Policy):
    def decide(self, view):
        pathlib.Path("{folder}/waiting", str(os.getpid())).touch()
        while pathlib.Path("{folder}/hold").exists():
            time.sleep(0.01)
        for job in view.queue:
            place = view.free.fit(job)
            if place is None:
                return
            yield Start(job, place)
"""
FAILING = """
import os, time
from batkube.policies.interface import Policy
class Crashing(Policy):
    def decide(self, view):
        os.abort()
class Lazy(Policy):
    def decide(self, view):
        return ()
class Endless(Policy):
    def decide(self, view):
        while True:
            time.sleep(0.01)
class Wrong(Policy):
    def decide(self, view):
        raise ValueError("an invalid value")
"""


@dataclass
class Cluster:
    """A Dask scheduler and its workers, each a process in another folder than the experiment."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--host", "127.0.0.1", *arguments]
        with (self.folder / f"{program}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    @property
    def executor(self) -> str:
        address = json.loads((self.folder / "scheduler.json").read_text())["address"]
        return f"dask://{address.removeprefix('tcp://')}"

    def worker(self) -> subprocess.Popen[bytes]:
        """Start another worker, which executes one run at a time."""
        arguments = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        return self.start("worker", "--scheduler-file", "scheduler.json", *arguments)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", "scheduler.json")
    wait_until(lambda: "}" in read_if_exists(cluster.folder / "scheduler.json"))
    for number in range(1, 3):
        cluster.worker()
        wait_until(lambda number=number: "Registered to" in read_if_exists(cluster.folder / f"worker-{number}.log"))
    yield cluster
    cluster.stop()


@pytest.fixture
def blocked_study(study: Study) -> Study:
    """An experiment of six runs, of which the last four wait until the file `hold` is removed."""
    (study.folder / "patient.py").write_text(PATIENT.format(folder=study.folder))
    (study.folder / "waiting").mkdir()
    (study.folder / "hold").touch()
    study.file(axes={"scheduler": ["policy:sjf", "policy:./patient.py:Patient"]}, seeds=[1, 2, 3, 4])
    return study


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("the condition did not become true")


def read_if_exists(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def start(study: Study, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "batkube", "experiment", "experiment.yaml", "--no-report", "--keep-finished"]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *arguments], cwd=study.folder, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of an experiment; return its exit code and its error output."""
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def runs_in(out: Path) -> dict[str, dict[str, object]]:
    """Return the files of each run, and its manifest without real times."""
    runs: dict[str, dict[str, object]] = {}
    for folder in sorted(out.glob("runs/[!.]*")):
        manifest = json.loads((folder / "manifest.json").read_text())
        description = {key: value for key, value in manifest.items() if key not in ("real", "seal", "command")}
        files = [folder / name for name in SIMULATED if (folder / name).exists()]
        runs[folder.name] = description | {path.name: path.read_bytes() for path in files}
    return runs


def waiting_pids(study: Study) -> list[int]:
    return [int(path.name) for path in (study.folder / "waiting").iterdir()]


def test_runs_on_a_cluster_give_the_same_bytes_even_if_a_worker_is_killed(
    blocked_study: Study, cluster: Cluster
) -> None:
    process = start(blocked_study, "--out", "out", "--executor", cluster.executor)
    wait_until(lambda: len(waiting_pids(blocked_study)) == 2)
    run_pids = waiting_pids(blocked_study)
    cluster.processes[1].kill()
    cluster.processes[1].wait()
    (blocked_study.folder / "hold").unlink()
    code, err = finish(process)
    local_end = finish(start(blocked_study, "--out", "local", "--jobs", "2"))

    assert (code, local_end[0]) == (0, 0), err
    assert len(runs_in(blocked_study.out)) == 8
    assert runs_in(blocked_study.out) == runs_in(blocked_study.folder / "local")
    assert (blocked_study.out / "results.csv").read_bytes() == (
        blocked_study.folder / "local" / "results.csv"
    ).read_bytes()
    for pid in run_pids:  # a run ends with its worker, or else with the experiment
        wait_for_end(pid)


def test_a_local_dask_cluster_reports_failures_as_processes_do(study: Study) -> None:
    (study.folder / "failing.py").write_text(FAILING)
    names = ("Crashing", "Lazy", "Endless", "Wrong")
    study.file(axes={"scheduler": ["policy:easy", *(f"policy:./failing.py:{name}" for name in names)]})

    remote_end = finish(start(study, "--out", "out", "--executor", "dask-local", "--jobs", "2", "--time-limit", "2s"))
    shutil.move(study.out, study.folder / "remote")
    local_end = finish(start(study, "--out", "out", "--jobs", "2", "--time-limit", "2s"))

    def stable_lines(text: str) -> list[str]:
        # The line that a time limit interrupts differs each time.
        lines = (line.partition(", in ")[0] for line in text.splitlines() if "runs done" not in line)
        return [line for line in lines if "0x" not in line and "File " not in line]

    assert remote_end[0] == local_end[0] == 1
    assert stable_lines(remote_end[1]) == stable_lines(local_end[1])
    assert "was killed by SIGABRT" in remote_end[1]
    assert "stopped after 2 s of real time" in remote_end[1]
    assert "an invalid value" in remote_end[1]
    remote, local = runs_in(study.folder / "remote"), runs_in(study.out)
    assert remote.keys() == local.keys()
    for name in remote:
        if "Endless" not in name and "Crashing" not in name:
            assert remote[name] == local[name]


def test_ctrl_c_waits_for_the_runs_and_a_second_one_kills_them(blocked_study: Study, cluster: Cluster) -> None:
    process = start(blocked_study, "--out", "out", "--executor", cluster.executor)
    wait_until(lambda: len(waiting_pids(blocked_study)) == 2)
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "stopping")
    process.send_signal(signal.SIGINT)
    code, err = finish(process)

    assert code == 130
    assert "4 of 8 runs are finished and kept in out" in err
    assert f"--executor {cluster.executor}" in err
    assert "Traceback" not in err
    for pid in waiting_pids(blocked_study):
        wait_for_end(pid)

    (blocked_study.folder / "hold").unlink()
    code, err = finish(start(blocked_study, "--out", "out", "--executor", cluster.executor))

    assert code == 0, err
    assert len(runs_in(blocked_study.out)) == 8


def test_a_stopped_dask_scheduler_causes_one_message_and_finished_runs_are_kept(
    blocked_study: Study, cluster: Cluster
) -> None:
    process = start(blocked_study, "--out", "out", "--executor", cluster.executor)
    wait_until(lambda: len(waiting_pids(blocked_study)) == 2)
    cluster.processes[0].kill()
    code, err = finish(process)

    assert code == 2, err
    assert "the Dask scheduler has stopped" in err
    assert "Traceback" not in err
    assert len(runs_in(blocked_study.out)) == 4


def command(study: Study, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process, and return its exit code."""
    monkeypatch.chdir(study.folder)
    monkeypatch.setattr(sys, "argv", ["batkube", "experiment", "experiment.yaml", "--out", "out", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    ("executor", "problem"),
    [
        ("dask://nowhere", "is not the address of a Dask scheduler"),
        ("dask://:8786", "is not the address of a Dask scheduler"),
        ("dask://localhost:99999", "is not the address of a Dask scheduler"),
        ("dask://127.0.0.1:1", "no Dask scheduler answers there"),
        ("dask", "there is no executor 'dask'"),
    ],
)
def test_an_invalid_dask_address_causes_one_message(
    executor: str,
    problem: str,
    study: Study,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("batkube.experiments.running.dask_executor._CONNECT_TIMEOUT_S", 1)
    study.file(axes={"scheduler": ["policy:fcfs"]})

    assert command(study, monkeypatch, "--executor", executor) == 2
    err = capsys.readouterr().err
    assert problem in err
    assert "remedy:" in err


def test_a_missing_dask_is_reported_with_how_to_install_it(
    study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    study.file(axes={"scheduler": ["policy:fcfs"]})

    assert command(study, monkeypatch, "--executor", "dask-local") == 2
    assert "pip install 'batkube[dask]'" in capsys.readouterr().err


def test_dask_is_only_imported_when_it_is_used() -> None:
    program = "import batkube, batkube.experiments.experiment, sys; print('distributed' in sys.modules)"

    assert subprocess.check_output([sys.executable, "-c", program], env=dict(os.environ), text=True) == "False\n"
