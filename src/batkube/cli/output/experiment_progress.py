"""Show the progress of an experiment: a bar on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from batkube.experiments.running.orchestrator import Progress, ProgressListener
from batkube.kernel.instants import human_duration, seconds
from batkube.kernel.stopwatch import Stopwatch

#: Real seconds between two lines.
_LINE_INTERVAL_S = 10.0
#: The maximum number of running runs to list.
_MAX_NAMES = 4
_STOPPING = "stopping: waiting for active runs; press Ctrl-C again to stop them at once"


@contextlib.contextmanager
def experiment_display(quiet: bool) -> Iterator[ProgressListener]:
    """Yield the progress listener for an experiment."""
    if quiet:
        yield lambda progress: None
    elif sys.stderr.isatty():
        with _bar() as listener:
            yield listener
    else:
        yield _ExperimentProgressLines().show


@contextlib.contextmanager
def _bar() -> Iterator[ProgressListener]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from batkube.text.console import EscapingConsole

    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[running]}"),
    )
    with Bar(*columns, console=EscapingConsole(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=None, failed="", running="")

        def show(progress: Progress) -> None:
            bar.update(
                task,
                total=progress.total,
                completed=progress.done + progress.failed,
                failed=f"{progress.failed} failed" if progress.failed else "",
                running=_STOPPING if progress.stopping else _running_names(progress),
            )

        yield show


def _running_names(progress: Progress) -> str:
    more = len(progress.running) - _MAX_NAMES
    return ", ".join(progress.running[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


class _ExperimentProgressLines:
    """Prints a line at the start, every few seconds, at the end, and on Ctrl-C."""

    def __init__(self) -> None:
        self._stopwatch = Stopwatch()
        self._next_s = 0.0
        self._has_printed_stop = False

    def show(self, progress: Progress) -> None:
        """Print a line if it is time for one."""
        if progress.stopping and not self._has_printed_stop:
            self._has_printed_stop = True
            print(_STOPPING, file=sys.stderr, flush=True)
        elif self._stopwatch.real_s >= self._next_s or not progress.remaining:
            self._next_s = self._stopwatch.real_s + _LINE_INTERVAL_S
            print(self._line(progress), file=sys.stderr, flush=True)

    def _line(self, progress: Progress) -> str:
        parts = [f"{progress.done:,} of {progress.total:,} runs done"]
        if progress.failed:
            parts.append(f"{progress.failed:,} failed")
        ended_now = progress.done + progress.failed - progress.finished_before
        if ended_now and progress.remaining:
            left_s = self._stopwatch.real_s / ended_now * progress.remaining
            parts.append(f"about {human_duration(seconds(round(left_s)))} left")
        if progress.running:
            parts.append(f"running {_running_names(progress)}")
        return ", ".join(parts)
