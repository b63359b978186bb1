"""Limit the memory held for slow clients: incomplete requests and unread responses.

Each connection may buffer one request or response. That is little for one client but too much for ten thousand, so
there is also a limit on the total. Beyond it, the connection that has made no progress for longest is aborted.
"""

from __future__ import annotations

import logging
from typing import Protocol

log = logging.getLogger(__name__)

MAX_BUFFERED_BYTES = 256 * 1024 * 1024


class BufferOwner(Protocol):
    """A connection with buffers."""

    @property
    def buffered_bytes(self) -> int:
        """How many bytes are buffered for the client."""

    def abort(self) -> None:
        """Close the connection at once and discard its buffers."""


class BufferLimit:
    """Tracks the buffered bytes of all connections, and aborts the slowest ones beyond the limit."""

    def __init__(self, limit: int = MAX_BUFFERED_BYTES) -> None:
        self._limit = limit
        #: Buffered bytes by connection, in the order of their last progress.
        self._buffered: dict[BufferOwner, int] = {}
        self.total_bytes = 0

    def update(self, owner: BufferOwner) -> None:
        """Record the buffered bytes of `owner`, which has just made progress."""
        buffered_bytes = owner.buffered_bytes
        self.total_bytes += buffered_bytes - self._buffered.pop(owner, 0)
        if buffered_bytes:
            self._buffered[owner] = buffered_bytes
        # Never abort the last one: a single response may exceed the limit.
        while self.total_bytes > self._limit and len(self._buffered) > 1:
            slowest = next(iter(self._buffered))
            self.forget(slowest)
            log.warning("aborted a slow client: the buffers of all connections exceed %d bytes", self._limit)
            slowest.abort()

    def forget(self, owner: BufferOwner) -> None:
        """Remove a closed connection."""
        self.total_bytes -= self._buffered.pop(owner, 0)
