"""The log of `serve`, on standard error, limited to some short records a minute.

A record is a fault of ours or an attack, and either can come thousands of times a second.
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
    """Lets some records pass each minute, and tells with the next one how many it kept back."""

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
    """Cuts long records: the request that failed may be as long as its sender liked."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        # The end of a traceback tells what happened.
        return (
            text
            if len(text) <= _MAX_CHARACTERS
            else f"{text[: _MAX_CHARACTERS // 2]} … {text[-_MAX_CHARACTERS // 2 :]}"
        )


@contextlib.contextmanager
def rate_limited_log() -> Iterator[None]:
    """Write warnings to standard error as long as the block runs: short ones, and no more than a few."""
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
