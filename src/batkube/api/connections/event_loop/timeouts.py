"""How long a client may keep a connection of `serve` waiting. In virtual time nobody is ever late.

The bounds are the real server's: 32 s for a head and 90 s between requests (Kubernetes: apiserver/pkg/server/
secure_serving.go), 60 s for all of a request (--request-timeout). A watch may be as quiet as its objects are; but a
reader that takes nothing for a minute while there is something to tell is cut off. (The real server drops a watch
that does not keep up much earlier: apiserver/pkg/storage/cacher/cache_watcher.go.)
"""

from __future__ import annotations

import math
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from batkube.api.connections.protocol.connection import Phase

FIRST_BYTES_S = 32.0
"""For the first byte, and for the greetings of TLS."""

LIMITS_S: Mapping[Phase, float] = MappingProxyType(
    {Phase.HEAD: FIRST_BYTES_S, Phase.BODY: 60.0, Phase.IDLE: 90.0, Phase.READER: 60.0}
)
_TICK_S = 1.0


class TimedConnection(Protocol):
    """A connection that waits for its client."""

    #: How far it had come when it was last found to have come any further, and when that was.
    last_progress: tuple[int, float]

    @property
    def phase_changes(self) -> int:
        """Grows whenever it begins to wait for something else."""

    @property
    def phase(self) -> Phase:
        """What it waits for."""

    def abort(self) -> None:
        """End at once."""


class TimeoutMonitor:
    """Looks at all connections from time to time, and ends those whose clients have kept them waiting too long."""

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
        """Watch the connection no longer."""
        if self._timer is not None:
            self._timer.cancel()
