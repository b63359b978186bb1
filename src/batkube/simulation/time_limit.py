"""A limit on the real time of a run.

An alarm enforces it, so that it also stops a policy that never returns, and a wait for a program that never answers.
If a policy catches every exception, a second alarm ends the process with a one-line message and without results.
During a long call into a C library no Python code runs; then `faulthandler` prints the stack.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, as_float_s, human_duration

#: The time between the alarm and the end of the process; doubled if Python does not get to run the signal handler.
_GRACE_S = 5.0
#: Three years: an upper bound for timers of the operating system.
_MAX_LIMIT_S = 1e8


class TimeLimitReached(KeyboardInterrupt):
    """The run has reached its time limit; it ends as with Ctrl-C."""


@contextlib.contextmanager
def time_limit(limit: Duration | None) -> Iterator[None]:
    """Raise TimeLimitReached in the block once it has taken `limit` of real time. None means no limit."""
    if limit is None:
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        raise InputError(
            "time-limit",
            problem="works only in the main thread, because it uses SIGALRM",
            remedy="omit it, or run in the main thread or in a process of its own",
        )
    limit_s = min(as_float_s(limit), _MAX_LIMIT_S)
    before = signal.signal(signal.SIGALRM, _TimeLimitAlarm(limit).handle_signal)
    faulthandler.dump_traceback_later(limit_s + 2 * _GRACE_S, exit=True, file=2)
    signal.setitimer(signal.ITIMER_REAL, limit_s, _GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


class _TimeLimitAlarm:
    """Handles SIGALRM: the first alarm raises TimeLimitReached, the second one ends the process."""

    def __init__(self, limit: Duration) -> None:
        self._message = f"stopped after {human_duration(limit)} of real time, its time limit,"
        self._has_fired = False

    def handle_signal(self, _number: int, frame: FrameType | None) -> None:
        if self._has_fired and frame is not None:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            print(f"failed: {self._message} and nothing is kept: {place} catches every exception", file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)
        self._has_fired = True
        raise TimeLimitReached(self._message)
