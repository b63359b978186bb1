"""Timeouts of connections."""

from __future__ import annotations

import asyncio

import pytest
from tests.api.connections.echo import Echo

from batkube.api.connections.event_loop.server_connections import EventLoopConnection, ServerConnections
from batkube.api.connections.protocol.connection import Phase

LATE = {
    Phase.HEAD: b"GET / HT",
    Phase.BODY: b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
    Phase.IDLE: b"GET / HTTP/1.1\r\n\r\n",
    Phase.READER: b"GET /?size=50000000 HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("phase", list(LATE))
def test_a_connection_that_exceeds_its_timeout_is_aborted(phase: Phase) -> None:
    async def kept_waiting() -> int:
        loop = asyncio.get_running_loop()
        crowd = ServerConnections(loop, {phase: 0.01})
        server = await loop.create_server(lambda: EventLoopConnection(Echo(), crowd), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.transport.pause_reading()
        writer.write(LATE[phase])
        for _ in range(2000):
            await asyncio.sleep(0.01)
            if crowd.connections and not was_there:
                was_there.append(True)
            if was_there and not crowd.connections:
                break
        left = len(crowd.connections)
        writer.transport.abort()
        server.close()
        crowd.close()
        await asyncio.sleep(0.01)
        return left

    was_there: list[bool] = []
    assert asyncio.run(kept_waiting()) == 0
