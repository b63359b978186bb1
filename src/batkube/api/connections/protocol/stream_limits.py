"""Limit the number of open streams (watches, followed logs) per user.

A client that leaks watches goes unnoticed until it has used up all connections. Beyond the limit it gets a 429, as from
API priority and fairness (Kubernetes: apiserver/pkg/server/filters/priority-and-fairness.go, tooManyRequests).
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from batkube.api.requests.messages import Stream
from batkube.api.requests.statuses import Failure

MAX_STREAMS = 2048


class StreamLimits:
    """Counts the open streams of each user."""

    def __init__(self, limit: int = MAX_STREAMS) -> None:
        self._limit = limit
        self._open_streams: Counter[str] = Counter()

    def admit(self, stream: Stream, user: str) -> Stream:
        """Return `stream`, counted for `user` until it stops; raises Failure (429) if the user has too many."""
        if self._open_streams[user] >= self._limit:
            raise Failure(
                429, "TooManyRequests", "Too many requests, please try again later.", {"retryAfterSeconds": 1}
            )
        self._open_streams[user] += 1
        stream.on_stopped = partial(self._on_stream_stopped, user)
        return stream

    def _on_stream_stopped(self, user: str) -> None:
        self._open_streams[user] -= 1
        if not self._open_streams[user]:
            del self._open_streams[user]
