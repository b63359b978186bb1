"""Limits of the machine (files, processes, threads, memory, stack) are reported in one message."""

from __future__ import annotations

import json
import re
import resource
from pathlib import Path

import pytest
from tests.commands import EXPERIMENT, RUN, run_batkube, write_study

#: Fails like fork(2) when a user has reached the limit of processes.
NO_FORK = """
import errno, os, subprocess
def refuse(*_):
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
subprocess._fork_exec = refuse
"""
#: Fails like CPython in this case.
NO_THREAD = """
import threading
def refuse(*_):
    raise RuntimeError("can't start new thread")
threading._start_new_thread = refuse
"""
#: Policies that use up a resource of the machine.
GREEDY = """
import resource
from batkube.policies.interface import Policy, Start

class Greedy(Policy):
    def decide(self, view):
        hoard = []
        while True:
            hoard.append(bytearray(1 << 20))
        yield

class Deep(Policy):
    def decide(self, view):
        yield from self.decide(view)

class Spoiler(Policy):
    def decide(self, view):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used, used))
        for job in view.queue:
            yield Start(job, view.free.fit(job))
"""
FILES = """error: the machine: allows this process no more open files: the limit is {}
  remedy: raise the limit of this shell: ulimit -n 4096
"""
PROCESSES = "error: the machine: allows no more processes or threads"


def allow_files(count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


@pytest.mark.parametrize("count", [5, 8, 12])
def test_an_experiment_with_too_few_open_files_fails_no_run(tmp_path: Path, count: int) -> None:
    write_study(tmp_path, "policy:fcfs", "policy:easy", "policy:sjf")

    result = run_batkube(tmp_path, *EXPERIMENT, "--jobs", "3", prepare=lambda: allow_files(count))
    again = run_batkube(tmp_path, *EXPERIMENT, "--quiet")

    assert result.returncode == 2
    assert result.stderr.endswith(FILES.format(count))
    assert (again.returncode, again.stdout) == (0, "done=3\nfailed=0\n")


def test_a_server_with_too_few_open_files_does_not_start(tmp_path: Path) -> None:
    """An earlier version started, and closed every connection."""
    served = ("serve", "--platform", "1x1", "--out", "out")

    result = run_batkube(tmp_path, *served, prepare=lambda: allow_files(64))

    assert (result.returncode, result.stderr) == (2, FILES.format(64))
    assert not (tmp_path / "out").exists()


def test_a_run_with_too_few_open_files_is_an_input_error(tmp_path: Path) -> None:
    write_study(tmp_path)

    result = run_batkube(tmp_path, *RUN, prepare=lambda: allow_files(5))

    assert (result.returncode, result.stderr) == (2, FILES.format(5))
    assert not (tmp_path / "out").exists()


def test_a_server_with_too_few_open_files_is_an_input_error(tmp_path: Path) -> None:
    result = run_batkube(
        tmp_path, "serve", "--platform", "2x1", "--port", "0", "--out", "out", prepare=lambda: allow_files(6)
    )

    assert (result.returncode, result.stderr) == (2, FILES.format(6))


@pytest.mark.parametrize("refusal", [NO_FORK, NO_THREAD], ids=["fork", "thread"])
def test_an_experiment_without_processes_or_threads_fails_no_run(tmp_path: Path, refusal: str) -> None:
    write_study(tmp_path, "policy:fcfs", "policy:easy")

    result = run_batkube(tmp_path, *EXPERIMENT, program=refusal)
    again = run_batkube(tmp_path, *EXPERIMENT, "--quiet")

    assert result.returncode == 2
    assert PROCESSES in result.stderr
    assert (again.returncode, again.stdout) == (0, "done=2\nfailed=0\n")


def test_a_process_limit_is_not_blamed_on_the_scheduler(tmp_path: Path) -> None:
    write_study(tmp_path)

    result = run_batkube(tmp_path, *RUN, "--scheduler", "/bin/true", program=NO_FORK)

    assert result.returncode == 2
    assert result.stderr.startswith(PROCESSES)


def test_a_policy_that_exhausts_memory_fails_the_run_with_one_message(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=GREEDY)
    limit = 1 << 30

    result = run_batkube(
        tmp_path,
        *(*RUN, "--scheduler", "policy:./mine.py:Greedy"),
        prepare=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )

    assert result.returncode == 1
    assert result.stderr.startswith("failed: policy Greedy: failed in mine.py:")
    assert "MemoryError" in result.stderr
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["result"] == "failed"


def test_memory_exhausted_between_decisions_causes_one_message(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=GREEDY)
    jobs = [{"id": f"{number}", "subtime": number, "res": 1, "profile": "d"} for number in range(20_000)]
    (tmp_path / "w.json").write_text(
        json.dumps({"nb_res": 2, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 1}}})
    )

    result = run_batkube(tmp_path, *RUN, "--quiet", "--scheduler", "policy:./mine.py:Spoiler")

    assert (result.returncode, re.split(" at |: the limit", result.stderr.splitlines()[0])[0]) in (
        (1, "failed: out of memory"),
        (2, "error: the machine: has no memory left"),
    )


def test_a_workload_larger_than_memory_causes_one_message(tmp_path: Path) -> None:
    write_study(tmp_path)
    (tmp_path / "w.json").write_text("[" * (1 << 24))
    limit = 400 << 20

    result = run_batkube(tmp_path, *RUN, prepare=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    assert result.returncode == 2
    assert len(result.stderr.splitlines()) <= 2


def test_an_endless_recursion_of_a_policy_fails_the_run(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=GREEDY)

    result = run_batkube(tmp_path, *RUN, "--scheduler", "policy:./mine.py:Deep")

    assert result.returncode == 1
    assert "RecursionError" in result.stderr.splitlines()[0]


def test_thousands_of_brackets_cause_one_message(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[" * 20_000)

    result = run_batkube(tmp_path, "run", "s.yaml", "--out", "out")

    assert result.returncode == 2
    assert len(result.stderr.splitlines()) <= 2
