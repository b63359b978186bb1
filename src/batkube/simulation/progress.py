"""Show the progress of a run: a bar on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator

from batkube.kernel.instants import Instant, human_duration
from batkube.kernel.stopwatch import Stopwatch

ProgressListener = Callable[[int, int, Instant], None]
"""Called periodically with the number of ended jobs, of all jobs, and the virtual time."""

#: Real seconds between two updates.
_BAR_INTERVAL_S = 0.1
_LINE_INTERVAL_S = 5.0


@contextlib.contextmanager
def progress_display(quiet: bool, done: str = "simulated") -> Iterator[ProgressListener]:
    """Yield the progress listener for a run; `done` is a verb for its time."""
    if quiet:
        yield lambda done, total, now: None
    elif sys.stderr.isatty():
        with _bar(done) as listener:
            yield listener
    else:
        yield _throttled(functools.partial(_print_line, done_with=done), _LINE_INTERVAL_S)


def is_interactive() -> bool:
    """Return whether the output is a terminal or a notebook."""
    return sys.stderr.isatty() or _is_in_notebook()


def _is_in_notebook() -> bool:
    """Return whether this is the kernel of a notebook; an imported IPython module alone does not prove it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextlib.contextmanager
def _bar(done_with: str) -> Iterator[ProgressListener]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from batkube.text.console import EscapingConsole

    columns = (
        TextColumn("jobs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{{task.fields[virtual]}} {done_with}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=EscapingConsole(stderr=True), transient=True) as bar:
        task = bar.add_task("jobs", total=None, virtual="0 s")

        def show(done: int, total: int, now: Instant) -> None:
            bar.update(task, completed=done, total=total, virtual=human_duration(now))

        yield _throttled(show, _BAR_INTERVAL_S)


def _print_line(done: int, total: int, now: Instant, done_with: str) -> None:
    print(f"{done:,} of {total:,} jobs ended, {human_duration(now)} {done_with}", file=sys.stderr, flush=True)


def _throttled(show: ProgressListener, interval_s: float) -> ProgressListener:
    stopwatch = Stopwatch()
    next_s = interval_s

    def listener(done: int, total: int, now: Instant) -> None:
        nonlocal next_s
        if stopwatch.real_s >= next_s:
            next_s = stopwatch.real_s + interval_s
            show(done, total, now)

    return listener
