"""How many streams (watches, logs that are followed) each user may have open.

A stream is cheap and lasts, so nobody notices a client that opens ever more of them until all connections are taken.
Beyond the bound a client is told to come back later, as API priority and fairness does (Kubernetes: apiserver/pkg/
server/filters/priority-and-fairness.go, tooManyRequests).
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from batkube.api.requests.messages import Stream
from batkube.api.requests.statuses import Failure

MAX_STREAMS = 2048


class StreamLimits:
    """Who is told how many streams."""

    def __init__(self, limit: int = MAX_STREAMS) -> None:
        self._limit = limit
        self._open_streams: Counter[str] = Counter()

    def admit(self, stream: Stream, user: str) -> Stream:
        """Return `stream`, counted for `user` until it stops; raises Failure (429) when they are too many."""
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
