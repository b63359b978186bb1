"""Cache comparisons: the signal to a scheduler, and the differences that it logs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from batkube.kernel.instants import Instant
from batkube.programs import cache_comparison
from batkube.programs.cache_comparison import CacheComparison, supports_cache_comparison
from batkube.programs.program import ExternalProgram
from batkube.schedulers.named_programs import ProgramStart
from batkube.timing.processes.attached_process import AttachedProcess
from batkube.timing.processes.program_log import ProgramLog

#: A program that answers SIGUSR2 with the lines in its arguments.
SCHEDULER = """
import signal, sys

def compare(*_):
    for line in sys.argv[1:]:
        print(line, flush=True)

signal.signal(signal.SIGUSR2, compare)
print("ready", flush=True)
while True:
    signal.pause()
"""
DUMP = 'I0101 00:00:00.000000 1 dumper.go:70] "Dump of scheduling queue"'


@dataclass
class Process:
    """What a comparison uses of an attached process."""

    name: str
    pid: int
    log: ProgramLog


Start = Callable[..., CacheComparison]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a scheduler that answers with some lines, and return its comparisons."""
    processes: list[subprocess.Popen[bytes]] = []
    logs: list[ProgramLog] = []

    def start(*lines: str) -> CacheComparison:
        log = ProgramLog(tmp_path / "log")
        logs.append(log)
        process = subprocess.Popen([sys.executable, "-c", SCHEDULER, *lines], stdout=log.sink)
        processes.append(process)
        while b"ready" not in log.head:
            assert process.poll() is None
            log.drain()
        return CacheComparison(cast("AttachedProcess", Process("kube-scheduler", process.pid, log)))

    yield start
    for process in processes:
        process.kill()
        process.wait()
    for log in logs:
        log.close()


def test_equal_caches_have_no_differences(start: Start) -> None:
    assert start(DUMP).run(Instant(5)) == []


def test_each_mismatch_is_a_difference(start: Start) -> None:
    comparison = start(
        'E0101 comparer.go:80] "Cache mismatch" missedPods=["a"]', '"cache mismatch" redundantPods=["b"]', DUMP
    )

    assert comparison.run(Instant(7)) == [
        {"kind": "cache", "scheduler": "kube-scheduler", "what": what, "at": 7}
        for what in ('missedPods=["a"]', 'redundantPods=["b"]')
    ]


def test_earlier_mismatches_do_not_count_again(start: Start) -> None:
    comparison = start('"Cache mismatch" missedPods=["a"]', DUMP)

    assert [len(comparison.run(Instant(at)) or ()) for at in (1, 2)] == [1, 1]


def test_a_scheduler_that_does_not_finish_in_time_has_no_result(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_comparison, "_TIMEOUT_S", 0.2)

    assert start("nothing of interest").run(Instant(5)) is None


@pytest.mark.parametrize(
    ("name", "is_supported"), [("kube-scheduler@1.34.4", True), ("scheduler-plugins", True), ("./mine", False)]
)
def test_only_programs_that_handle_the_signal_receive_it(name: str, is_supported: bool, tmp_path: Path) -> None:
    program = ExternalProgram(name, tmp_path / "program", ProgramStart((), {}, ""))

    assert supports_cache_comparison(program) is is_supported
