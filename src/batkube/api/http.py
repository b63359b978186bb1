"""The API server on sockets of the real world, within an asyncio event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from batkube.api.connections import Connection, Handler, Wire


class LoopConnection(Connection, asyncio.Protocol):
    """A connection whose bytes an event loop moves."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self.serve_over(cast(Wire, transport))


class LoopTimers:
    """Timers on the real clock of the event loop, divided by the speed of the virtual clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop, speed: float = 1.0) -> None:
        self._loop = loop
        self._speed = speed

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in `seconds` of virtual time."""
        return self._loop.call_later(seconds / self._speed, callback).cancel


class Listener:
    """A listening server and its connections."""

    def __init__(self, server: asyncio.Server, connections: set[Connection]) -> None:
        self._server = server
        self._connections = connections

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.sockets[0].getsockname()[1])

    def disconnect(self) -> None:
        """Drop every connection, and go on listening."""
        for connection in sorted(self._connections, key=id):
            connection.drop()

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        self._server.close()
        self.disconnect()
        await asyncio.sleep(0)


async def listen(handler: Handler, host: str, port: int, tls: ssl.SSLContext | None = None) -> Listener:
    """Serve `handler` on `host`:`port` (0 for any free port) within the running event loop."""
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LoopConnection(handler, connections), host, port, ssl=tls, backlog=512)
    return Listener(server, connections)
