"""Processes that are stopped, killed or signalled at a bad moment leave no processes behind and lose no results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.commands import EXPERIMENT, RUN, TIMEOUT_S, command, run_batkube, write_study
from tests.process_ends import wait_for_end

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
#: Policies that never end; they create the file `here` when they begin.
ENDLESS = """
from pathlib import Path
from batkube.policies.interface import Policy, Start

class Endless(Policy):
    def decide(self, view):
        for job in view.queue:
            if job.name == "1":
                Path(HERE).touch()
                while True:
                    pass
            yield Start(job, view.free.fit(job))

class Deaf(Policy):
    def decide(self, view):
        Path(HERE).touch()
        while True:
            try:
                while True:  # what comes between two rounds is caught, too
                    sum(range(100))
            except BaseException:
                pass
        yield
"""


@contextmanager
def under_way(folder: Path, *arguments: str, ignored: tuple[int, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """Yield the process of a command when its policy is in its endless loop."""
    write_study(
        folder,
        "policy:fcfs",
        "policy:./mine.py:Endless",
        policy_file=ENDLESS.replace("HERE", repr(str(folder / "here"))),
    )

    def prepare() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    with subprocess.Popen(
        command(*arguments),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,
    ) as process:
        wait_for(lambda: (folder / "here").exists())
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(int(TIMEOUT_S / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code and the messages of a process, which must end soon."""
    _, messages = process.communicate(timeout=TIMEOUT_S)
    assert "Traceback" not in messages
    return process.returncode, messages


def children(process: subprocess.Popen[str]) -> list[int]:
    folder = Path(f"/proc/{process.pid}/task")
    texts = [(task / "children").read_text() for task in folder.iterdir()]
    return [int(pid) for text in texts for pid in text.split()]


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """Stop processes; kill them at the end."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_ends_an_endless_run_and_keeps_its_outputs(tmp_path: Path, number: signal.Signals) -> None:
    with under_way(tmp_path, *RUN, "--scheduler", "policy:./mine.py:Endless") as process:
        process.send_signal(number)
        code, messages = end_of(process)

    assert code == 1
    assert messages.startswith("failed: interrupted at 1 s of virtual time, in mine.py:")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["result"] == "failed"


def test_signals_in_quick_succession_count_as_one(tmp_path: Path) -> None:
    # As when a terminal is closed, or when systemd stops a unit.
    with under_way(tmp_path, *RUN, "--scheduler", "policy:./mine.py:Endless") as process:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGHUP):
            process.send_signal(number)
        code, messages = end_of(process)

    assert code == 1
    assert messages.endswith("what was computed until then is in out\n")


def test_the_third_signal_ends_a_policy_that_catches_everything(tmp_path: Path) -> None:
    with under_way(tmp_path, *RUN, "--scheduler", "policy:./mine.py:Deaf") as process:
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        code, _ = end_of(process)

    assert code == -signal.SIGINT


def test_a_signal_ignored_at_start_stays_ignored(tmp_path: Path) -> None:
    # As under nohup.
    with under_way(tmp_path, *RUN, "--scheduler", "policy:./mine.py:Endless", ignored=(signal.SIGHUP,)) as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        code, _ = end_of(process)

    assert code == 1


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_ends_an_experiment_with_stopped_workers(tmp_path: Path, number: signal.Signals) -> None:
    with under_way(tmp_path, *EXPERIMENT, "--jobs", "2") as process:
        wait_for(lambda: any((tmp_path / "out" / "runs").glob("fcfs-*/manifest.json")))
        workers = children(process)
        with stopped(workers):
            process.send_signal(number)
            # SIGTERM and SIGHUP within a second are one request.
            time.sleep(1.2)
            process.send_signal(number)
            code, messages = end_of(process)
            for pid in workers:
                wait_for_end(pid)

    assert code == 130
    assert "1 of 2 runs are finished and kept in out" in messages
    assert workers


def test_a_killed_worker_fails_only_its_run(tmp_path: Path) -> None:
    with under_way(tmp_path, *EXPERIMENT, "--jobs", "1") as process:
        for pid in children(process):
            os.kill(pid, signal.SIGKILL)
        code, messages = end_of(process)

    assert code == 1
    assert "failed: mine.py-Endless-" in messages
    assert "was killed by SIGKILL, as Linux does when memory runs out" in messages
    assert any((tmp_path / "out" / "runs").glob("fcfs-*/manifest.json"))


#: Sends Ctrl-C when a module is imported.
AT_IMPORT = """
import os, signal, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
"""
#: Sends Ctrl-C when the outputs are written.
AT_WRITING = """
import os, signal
import batkube.simulation.run_record as record
write = record.write_json
def write_and_stop(path, content):
    write(path, content)
    os.kill(os.getpid(), signal.SIGINT)
record.write_json = write_and_stop
"""
#: Sends Ctrl-C when Python shuts down.
AT_EXIT = """
import atexit, os, signal
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
"""


@pytest.mark.parametrize(
    "moment", ["batkube.cli.invocation", "batkube.cli.process.signals", "typer", "batkube.policies.fcfs"]
)
def test_ctrl_c_during_imports_prints_interrupted(tmp_path: Path, moment: str) -> None:
    write_study(tmp_path)

    result = run_batkube(tmp_path, "policies", program=AT_IMPORT.format(moment=moment))

    assert (result.returncode, result.stderr) == (130, "interrupted\n")


def test_ctrl_c_while_outputs_are_written_leaves_no_files(tmp_path: Path) -> None:
    write_study(tmp_path)

    result = run_batkube(tmp_path, *RUN, program=AT_WRITING)

    assert (result.returncode, result.stderr) == (130, "interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.yaml", "mine.py", "w.json"]


def test_ctrl_c_at_exit_prints_nothing(tmp_path: Path) -> None:
    write_study(tmp_path)

    result = run_batkube(tmp_path, *RUN, program=AT_EXIT)

    assert (result.returncode, result.stderr) == (-signal.SIGINT, "")
    assert (tmp_path / "out" / "manifest.json").exists()
