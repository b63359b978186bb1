"""What is kept for clients that keep us waiting: half a request, or an answer that is not read.

Each of them is allowed as much as one request or answer takes, which is little to one client and far too much to ten
thousand. So there is a bound for all of them together, and beyond it the one goes that has moved least lately.
"""

from __future__ import annotations

import logging
from typing import Protocol

log = logging.getLogger(__name__)

MAX_BUFFERED_BYTES = 256 * 1024 * 1024


class BufferOwner(Protocol):
    """A connection for which something is kept."""

    @property
    def buffered_bytes(self) -> int:
        """How many bytes are kept for the client until it takes them."""

    def abort(self) -> None:
        """End at once, and keep nothing any more."""


class BufferLimit:
    """How much is kept for whom."""

    def __init__(self, limit: int = MAX_BUFFERED_BYTES) -> None:
        self._limit = limit
        #: In the order in which they have last moved.
        self._buffered: dict[BufferOwner, int] = {}
        self.total_bytes = 0

    def update(self, owner: BufferOwner) -> None:
        """Take note of what is kept for `owner` now that it has moved."""
        held = owner.buffered_bytes
        self.total_bytes += held - self._buffered.pop(owner, 0)
        if held:
            self._buffered[owner] = held
        # The last one is left alone: a single answer may be larger than the bound.
        while self.total_bytes > self._limit and len(self._buffered) > 1:
            slowest = next(iter(self._buffered))
            self.forget(slowest)
            log.warning("a client that did not read, or did not end its request, was cut off: too much is kept")
            slowest.abort()

    def forget(self, owner: BufferOwner) -> None:
        """Take note that `owner` is gone."""
        self.total_bytes -= self._buffered.pop(owner, 0)
