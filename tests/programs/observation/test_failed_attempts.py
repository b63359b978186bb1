"""Parsing of failed attempts from kube-scheduler's log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.instants import EPOCH, Instant
from batkube.programs.observation.failed_attempts import AttemptLog, version_in_log
from batkube.programs.observation.log_lines import instant_in_log
from batkube.timing.processes.program_log import ProgramLog

YEAR_NS = 366 * 86_400 * 10**9
NO_FIT = (
    'I0101 00:00:01.500000 7 schedule_one.go:1077] "Unable to schedule pod; no fit; waiting" '
    'pod="default/w0-1" err="0/1 nodes: taint \\"x\\""\n'
)
ERROR = (
    'E0101 00:00:02.000000 7 schedule_one.go:1079] "Error scheduling pod; retrying" '
    'err="no such volume" logger="UnhandledError" pod="other/p"\n'
)
BOUND = 'I0101 00:00:01.000000 7 schedule_one.go:346] "Successfully bound pod to node" pod="default/w0-0" node="a"\n'


@pytest.fixture
def output(tmp_path: Path) -> Iterator[ProgramLog]:
    log = ProgramLog(tmp_path / "log.txt")
    yield log
    log.close()


def test_attempts_are_reported_with_their_instant_even_from_split_lines(output: ProgramLog) -> None:
    attempts: list[tuple[str, str, int]] = []
    log = AttemptLog(output, lambda *attempt: attempts.append(attempt))
    os.write(output.sink, (BOUND + NO_FIT[:60]).encode())
    log.read(Instant(2_000_000_000))
    assert attempts == []
    os.write(output.sink, (NO_FIT[60:] + ERROR).encode())
    log.read(Instant(2_000_000_000))
    assert attempts == [
        ("default/w0-1", '0/1 nodes: taint "x"', 1_500_000_000),
        ("other/p", "no such volume", 2_000_000_000),
    ]


@given(st.integers(-60 * 10**9, 20 * YEAR_NS), st.integers(0, 300 * 86_400 * 10**9))
def test_an_instant_survives_a_log_without_a_year(logged: int, later: int) -> None:
    at = EPOCH.__class__.fromtimestamp(EPOCH.timestamp() + logged // 10**9, EPOCH.tzinfo)
    micros = logged % 10**9 // 1000
    fields = (at.month, at.day, at.hour, at.minute, at.second, micros)
    instant = instant_in_log(tuple(b"%d" % field for field in fields), Instant(logged + later))
    assert instant // 1000 == logged // 1000


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('server.go:175] "Starting Kubernetes Scheduler" version="v1.34.4"', "v1.34.4"),
        ("server.go:146] Starting Kubernetes Scheduler version v1.19.0", "v1.19.0"),
        ('controllermanager.go:189] "Starting" version="v1.33.1"', "v1.33.1"),
        ("hello", None),
    ],
)
def test_the_version_is_read_from_the_start_up_message(line: str, version: str | None) -> None:
    log = f"I0101 00:00:00.000000 7 {line}\nI0101 00:00:00.000000 7 more.go:1] Starting\n"
    assert version_in_log(log.encode()) == version


@pytest.mark.parametrize(
    "message",
    [
        "Unable to schedule pod; no fit; waiting",
        "Unable to schedule pod, possibly due to node not found; waiting",
        "Unable to schedule pod belonging to a pod group; waiting",
        "Error scheduling pod; retrying",
    ],
)
def test_messages_of_every_version_are_parsed(output: ProgramLog, message: str) -> None:
    attempts: list[tuple[str, str, int]] = []
    log = AttemptLog(output, lambda *attempt: attempts.append(attempt))
    os.write(output.sink, f'I0101 00:00:01.000000 7 it.go:1] "{message}" pod="default/p" err="why"\n'.encode())
    log.read(Instant(1_000_000_000))
    assert attempts == [("default/p", "why", 1_000_000_000)]
