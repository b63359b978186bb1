"""Experiments on a real Dask cluster: the same bytes as in processes of ours, whatever happens to its workers."""

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
from tests.experiments.conftest import SIMULATED, Study
from tests.experiments.test_command import hear
from tests.process_ends import wait_for_end

from batkube.cli.main import main

#: Decides as first come, first served does, once `hold` is gone; tells who it is meanwhile. What it knows of places
#: it knows by absolute paths: there is no common folder in what a run is given.
PATIENT = """
import os, pathlib, time
from batkube.policies.interface import Policy, Start
class Patient(Policy):
    def decide(self, view):
        pathlib.Path("{folder}/at-work", str(os.getpid())).touch()
        while pathlib.Path("{folder}/hold").exists():
            time.sleep(0.01)
        for job in view.queue:
            place = view.free.fit(job)
            if place is None:
                return
            yield Start(job, place)
"""
TROUBLED = """
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
        raise ValueError("what a pity")
"""


@dataclass
class Cluster:
    """A scheduler of Dask's and its workers, each a process that knows nothing of the experiment's folder."""

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
        """Start another worker, which does one run at a time."""
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
    wait_until(lambda: "}" in text_of(cluster.folder / "scheduler.json"))
    for number in range(1, 3):
        cluster.worker()
        wait_until(lambda number=number: "Registered to" in text_of(cluster.folder / f"worker-{number}.log"))
    yield cluster
    cluster.stop()


@pytest.fixture
def held(study: Study) -> Study:
    """An experiment of six runs, the last four of which wait in the middle for `hold` to go."""
    (study.folder / "patient.py").write_text(PATIENT.format(folder=study.folder))
    (study.folder / "at-work").mkdir()
    (study.folder / "hold").touch()
    study.file(axes={"scheduler": ["policy:sjf", "policy:./patient.py:Patient"]}, seeds=[1, 2, 3, 4])
    return study


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to be")


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def start(study: Study, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "batkube", "experiment", "experiment.yaml", "--no-report", "--keep-finished"]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *arguments], cwd=study.folder, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of an experiment; return its exit code and what it told."""
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def runs_in(out: Path) -> dict[str, dict[str, object]]:
    """Return what there is of each run: files, and what its manifest says that real time does not change."""
    runs: dict[str, dict[str, object]] = {}
    for folder in sorted(out.glob("runs/[!.]*")):
        manifest = json.loads((folder / "manifest.json").read_text())
        told = {key: value for key, value in manifest.items() if key not in ("real", "seal", "command")}
        files = [folder / name for name in SIMULATED if (folder / name).exists()]
        runs[folder.name] = told | {path.name: path.read_bytes() for path in files}
    return runs


def at_work(study: Study) -> list[int]:
    return [int(path.name) for path in (study.folder / "at-work").iterdir()]


def test_runs_of_a_cluster_are_the_same_bytes_and_a_worker_that_is_killed_loses_nothing(
    held: Study, cluster: Cluster
) -> None:
    process = start(held, "--out", "out", "--executor", cluster.executor)
    wait_until(lambda: len(at_work(held)) == 2)
    run_pids = at_work(held)
    cluster.processes[1].kill()
    cluster.processes[1].wait()
    (held.folder / "hold").unlink()
    code, err = finish(process)
    here = finish(start(held, "--out", "here", "--jobs", "2"))

    assert (code, here[0]) == (0, 0), err
    assert len(runs_in(held.out)) == 8
    assert runs_in(held.out) == runs_in(held.folder / "here")
    assert (held.out / "results.csv").read_bytes() == (held.folder / "here" / "results.csv").read_bytes()
    for pid in run_pids:  # with the worker, its run has ended; with the experiment, all others
        wait_for_end(pid)


def test_a_cluster_of_ones_own_tells_of_failures_as_processes_do(study: Study) -> None:
    (study.folder / "troubled.py").write_text(TROUBLED)
    names = ("Crashing", "Lazy", "Endless", "Wrong")
    study.file(axes={"scheduler": ["policy:easy", *(f"policy:./troubled.py:{name}" for name in names)]})

    there = finish(start(study, "--out", "out", "--executor", "dask-local", "--jobs", "2", "--time-limit", "2s"))
    shutil.move(study.out, study.folder / "there")
    here = finish(start(study, "--out", "out", "--jobs", "2", "--time-limit", "2s"))

    def told(text: str) -> list[str]:
        # Where a loop was when its time was up is another line each time.
        kept = (line.partition(", in ")[0] for line in text.splitlines() if "runs done" not in line)
        return [line for line in kept if "0x" not in line and "File " not in line]

    assert there[0] == here[0] == 1
    assert told(there[1]) == told(here[1])
    assert "was killed by SIGABRT" in there[1]
    assert "stopped after 2 s of real time" in there[1]
    assert "what a pity" in there[1]
    remote, local = runs_in(study.folder / "there"), runs_in(study.out)
    assert remote.keys() == local.keys()
    for name in remote:
        if "Endless" not in name and "Crashing" not in name:
            assert remote[name] == local[name]


def test_ctrl_c_lets_runs_end_and_a_second_one_ends_them_at_once(held: Study, cluster: Cluster) -> None:
    process = start(held, "--out", "out", "--executor", cluster.executor)
    wait_until(lambda: len(at_work(held)) == 2)
    process.send_signal(signal.SIGINT)
    hear(process, "stopping")
    process.send_signal(signal.SIGINT)
    code, err = finish(process)

    assert code == 130
    assert "4 of 8 runs are finished and kept in out" in err
    assert f"--executor {cluster.executor}" in err
    assert "Traceback" not in err
    for pid in at_work(held):
        wait_for_end(pid)

    (held.folder / "hold").unlink()
    code, err = finish(start(held, "--out", "out", "--executor", cluster.executor))

    assert code == 0, err
    assert len(runs_in(held.out)) == 8


def test_a_scheduler_that_goes_away_is_one_message_and_what_is_finished_is_kept(held: Study, cluster: Cluster) -> None:
    process = start(held, "--out", "out", "--executor", cluster.executor)
    wait_until(lambda: len(at_work(held)) == 2)
    cluster.processes[0].kill()
    code, err = finish(process)

    assert code == 2, err
    assert "the Dask scheduler has stopped" in err
    assert "Traceback" not in err
    assert len(runs_in(held.out)) == 4


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
def test_a_wrong_address_is_one_message(
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


def test_without_dask_the_command_says_how_to_get_it(
    study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    study.file(axes={"scheduler": ["policy:fcfs"]})

    assert command(study, monkeypatch, "--executor", "dask-local") == 2
    assert "pip install 'batkube[dask]'" in capsys.readouterr().err


def test_the_experiment_is_not_slowed_by_what_it_does_not_use() -> None:
    program = "import batkube, batkube.experiments.experiment, sys; print('distributed' in sys.modules)"

    assert subprocess.check_output([sys.executable, "-c", program], env=dict(os.environ), text=True) == "False\n"
