"""Thread states: a thread in state S that is queued for a processor is not asleep."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from batkube.timing.pages import thread_states
from batkube.timing.pages.thread_states import ThreadStates


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that waits forever, for its input."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as one:
        yield one
        one.kill()


def falls_asleep(states: ThreadStates, within_s: float) -> bool:
    end = time.monotonic() + within_s
    while not (is_asleep := states.are_all_asleep()) and time.monotonic() < end:
        time.sleep(0.01)
    return is_asleep


def test_a_waiting_program_is_asleep(sleeper: subprocess.Popen[bytes]) -> None:
    assert falls_asleep(ThreadStates(sleeper.pid), 30)


def test_a_thread_that_is_queued_for_a_processor_is_not_asleep(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert falls_asleep(ThreadStates(sleeper.pid), 30)
    monkeypatch.setattr(thread_states._Task, "is_waiting", lambda _: False)
    monkeypatch.setattr(thread_states, "_ASSUMED_ASLEEP_S", 1e9)

    assert not falls_asleep(ThreadStates(sleeper.pid), 0.2)


def test_without_a_wait_channel_a_thread_that_has_not_run_for_long_is_asleep(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_states._Task, "is_waiting", lambda _: False)
    monkeypatch.setattr(thread_states, "_ASSUMED_ASLEEP_S", 0.3)

    assert falls_asleep(ThreadStates(sleeper.pid), 30)
