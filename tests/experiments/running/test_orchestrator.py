"""Ctrl-C may come between any two steps of who conducts an experiment: it always ends, and knows what ended before."""

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

#: So many reports are no waiting any more: all runs are over as soon as they are begun.
_PATIENCE = 50


class AtOnce:
    """Has each run over as soon as it is begun; the second of them fails."""

    def __init__(self) -> None:
        self.begun = 0

    def submit(self, _order: RunRequest) -> Future[str | None]:
        """Return the future of a run that is over."""
        self.begun += 1
        future: Future[str | None] = Future()
        future.set_result("lost its way" if self.begun == 2 else None)
        return future


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line of the conductor's module that is executed."""

    def __init__(self, line: int) -> None:
        self._left = line
        #: The function in which it came; none if there are not so many lines.
        self.place = ""

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - as sys.settrace has it
        if frame.f_code.co_filename != orchestrator.__file__:
            return None
        if event == "line" and self._left:
            self._left -= 1
            if not self._left:
                self.place = frame.f_code.co_name
                raise KeyboardInterrupt
        return self


def conduct(folder: Path, interrupt: Interrupt) -> tuple[int, Progress | None]:
    """Conduct three runs; return how many were begun, and what was reported last."""
    runs: list[Any] = [SimpleNamespace(name=name, scenario=None, programs={}, policy=b"") for name in "abc"]
    executor, told = AtOnce(), list[Progress]()

    def listen(progress: Progress) -> None:
        told.append(progress)
        assert len(told) < _PATIENCE, "it waits for what is over"

    conductor = ExperimentOrchestrator(runs, ExperimentFolder(folder), executor, listen)
    tracer = sys.gettrace()
    sys.settrace(interrupt)
    try:
        conductor.run([])
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(tracer)
    return executor.begun, told[-1] if told else None


def test_an_interrupt_at_any_line_loses_no_end_and_counts_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator, "_INTERVAL_S", 0.0)
    line = 0
    while True:
        line += 1
        interrupt = Interrupt(line)
        begun, last = conduct(tmp_path / str(line), interrupt)
        if not interrupt.place:
            break
        if last is not None and last.stopping:
            # A run that is just being begun is nobody's yet.
            known = (begun,) if interrupt.place in ("_gather", "_take", "_report") else (begun - 1, begun)
            assert last.done + last.failed in known, f"line {line}, in {interrupt.place}: {last}"

    assert line > 50
    assert last is not None
    assert (begun, last.done, last.failed) == (3, 2, 1)
