"""Timeouts of the connections of `serve`. Runs in virtual time have none.

The limits are those of kube-apiserver: 32 s for the request line and headers and 90 s between requests (Kubernetes:
apiserver/pkg/server/secure_serving.go), 60 s for a whole request (--request-timeout). A watch may be idle for any time,
but a client that reads nothing for a minute while events are pending is disconnected. (kube-apiserver closes a slow
watch much earlier: apiserver/pkg/storage/cacher/cache_watcher.go.)
"""

from __future__ import annotations

import math
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from batkube.api.connections.protocol.connection import Phase

FIRST_BYTES_S = 32.0
"""Timeout of the first byte, and of the TLS handshake."""

LIMITS_S: Mapping[Phase, float] = MappingProxyType(
    {Phase.HEAD: FIRST_BYTES_S, Phase.BODY: 60.0, Phase.IDLE: 90.0, Phase.READER: 60.0}
)
_TICK_S = 1.0


class TimedConnection(Protocol):
    """A connection that waits for its client."""

    #: The `phase_changes` at the last observed progress, and the time of that observation.
    last_progress: tuple[int, float]

    @property
    def phase_changes(self) -> int:
        """A counter that grows whenever the connection starts to wait for something else."""

    @property
    def phase(self) -> Phase:
        """What the connection waits for."""

    def abort(self) -> None:
        """Close the connection at once."""


class TimeoutMonitor:
    """Checks all connections periodically, and aborts those that have exceeded their timeout."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        connections: Callable[[], Iterable[TimedConnection]],
        limits_s: Mapping[Phase, float] = LIMITS_S,
    ) -> None:
        self._loop = loop
        self._connections = connections
        self._limits_s = limits_s
        self._timer: TimerHandle | None = None
        self._schedule_check()

    def _schedule_check(self) -> None:
        self._timer = self._loop.call_later(_TICK_S, self._check)

    def _check(self) -> None:
        now = self._loop.time()
        for connection in list(self._connections()):
            steps, since = connection.last_progress
            if connection.phase_changes != steps:
                connection.last_progress = (connection.phase_changes, now)
            elif now - since > self._limits_s.get(connection.phase, math.inf):
                connection.abort()
        self._schedule_check()

    def stop(self) -> None:
        """Stop the checks."""
        if self._timer is not None:
            self._timer.cancel()
