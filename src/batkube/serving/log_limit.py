"""Limits the log of `serve` on standard error to a few short records a minute.

A record reports a bug or an attack, and both can occur thousands of times a second.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from batkube.kernel.stopwatch import Stopwatch

_MAX_RECORDS = 20
_EVERY_S = 60.0
_MAX_CHARACTERS = 8000


class _RateLimit(logging.Filter):
    """Passes a few records per minute; the next one reports the number of suppressed ones."""

    def __init__(self) -> None:
        super().__init__()
        self._stopwatch = Stopwatch()
        self._passed = self._suppressed = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if self._stopwatch.real_s > _EVERY_S:
            self._stopwatch, self._passed = Stopwatch(), 0
        if self._passed == _MAX_RECORDS:
            self._suppressed += 1
            return False
        self._passed += 1
        if self._suppressed:
            record.msg, record.args = f"{record.getMessage()} ({self._suppressed:,} more were not logged)", ()
            self._suppressed = 0
        return True


class _ShortFormat(logging.Formatter):
    """Shortens long records: a failed request can have any length."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        # Keep the end: the last lines of a traceback name the error.
        return (
            text
            if len(text) <= _MAX_CHARACTERS
            else f"{text[: _MAX_CHARACTERS // 2]} … {text[-_MAX_CHARACTERS // 2 :]}"
        )


@contextlib.contextmanager
def rate_limited_log() -> Iterator[None]:
    """Log warnings to standard error while the block runs, shortened and rate-limited."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(_RateLimit())
    handler.setFormatter(_ShortFormat())
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
