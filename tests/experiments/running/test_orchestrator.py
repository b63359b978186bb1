"""Ctrl-C between any two steps of the orchestrator: it always returns, and records every run that has ended."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from batkube.experiments.running import orchestrator
from batkube.experiments.running.folder import ExperimentFolder
from batkube.experiments.running.orchestrator import ExperimentOrchestrator, Progress
from batkube.experiments.running.runner import RunRequest

#: All runs end as soon as they start, so more reports mean that the orchestrator waits forever.
_MAX_REPORTS = 50

#: The functions of the orchestrator that run after all runs are submitted.
_AFTER_SUBMISSION = ("_wait_for_all", "_record_result")


class ImmediateExecutor:
    """Ends each run as soon as it starts; the second one fails."""

    def __init__(self) -> None:
        self.started = 0

    def submit(self, _request: RunRequest) -> Future[str | None]:
        """Return the future of a run that has ended."""
        self.started += 1
        future: Future[str | None] = Future()
        future.set_result("the run failed" if self.started == 2 else None)
        return future


class Interrupt:
    """Raises KeyboardInterrupt at the n-th executed line of the orchestrator's module."""

    def __init__(self, line: int) -> None:
        self._remaining = line
        #: The interrupted function; empty if fewer lines are executed.
        self.function = ""

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - as sys.settrace has it
        if frame.f_code.co_filename != orchestrator.__file__:
            return None
        if event == "line" and self._remaining:
            self._remaining -= 1
            if not self._remaining:
                self.function = frame.f_code.co_name
                raise KeyboardInterrupt
        return self


def run_three(folder: Path, interrupt: Interrupt) -> tuple[int, Progress | None]:
    """Execute three runs; return how many were started, and the last report."""
    runs: list[Any] = [SimpleNamespace(name=name, scenario=None, programs={}, policy=b"") for name in "abc"]
    executor, reports = ImmediateExecutor(), list[Progress]()

    def on_progress(progress: Progress) -> None:
        reports.append(progress)
        assert len(reports) < _MAX_REPORTS, "it waits for runs that have ended"

    experiment = ExperimentOrchestrator(runs, ExperimentFolder(folder), executor, on_progress)
    tracer = sys.gettrace()
    sys.settrace(interrupt)
    try:
        experiment.run([])
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(tracer)
    return executor.started, reports[-1] if reports else None


def test_an_interrupt_at_any_line_records_every_end_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator, "_INTERVAL_S", 0.0)
    line = 0
    while True:
        line += 1
        interrupt = Interrupt(line)
        started, last = run_three(tmp_path / str(line), interrupt)
        if not interrupt.function:
            break
        if last is not None and last.stopping:
            # A run that is being submitted may be counted or not.
            expected = (started,) if interrupt.function in _AFTER_SUBMISSION else (started - 1, started)
            assert last.done + last.failed in expected, f"line {line}, in {interrupt.function}: {last}"

    assert line > 50
    assert last is not None
    assert (started, last.done, last.failed) == (3, 2, 1)
