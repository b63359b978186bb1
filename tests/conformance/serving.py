"""A server of Batkube on its own port, in a thread of the test's process; most tests of the API use it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from batkube.api.assembly import Api
from batkube.api.connections.event_loop.server_connections import (
    EventLoopConnection,
    EventLoopTimers,
    ServerConnections,
)
from batkube.api.connections.event_loop.webhook_transport import call_webhook
from batkube.api.requests.users import User, authenticated_user
from batkube.cluster.kinds import ServedApi
from batkube.cluster.store import Store
from batkube.kernel.instants import Instant, instant_of
from batkube.kernel.streams import Streams

USERS: dict[str, User] = {
    "admin-token": authenticated_user("admin", "1", ("system:masters",)),
    "user-token": authenticated_user("alice", "2", ()),
}

T = TypeVar("T")


@dataclass
class Serving:
    """A running server: its address and its components."""

    url: str
    api: Api
    store: Store
    _loop: asyncio.AbstractEventLoop
    _crowd: ServerConnections

    def inside(self, action: Callable[[], T]) -> T:
        """Run `action` in the server's thread between two requests, and return its result."""

        async def run() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout=60)

    def disconnect(self) -> None:
        """Close every connection, like a server that restarts; must be called `inside`."""
        self._crowd.drop_all()


@contextlib.contextmanager
def serving(history_limit: int = 10_000, more_versions: Sequence[str] = ()) -> Iterator[Serving]:
    """Run a bare server on a free loopback port; `more_versions` are additional API versions."""
    started: threading.Event = threading.Event()
    servers: list[Serving] = []
    stops: list[Callable[[], object]] = []

    async def run() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        start, began = instant_of("2026-11-15T20:00:00Z"), loop.time()

        def now() -> Instant:
            return Instant(start + int((loop.time() - began) * 1e9))

        store = Store(history_limit)
        api = Api(
            store,
            now,
            EventLoopTimers(loop),
            Streams(1),
            USERS,
            bare=True,
            call_webhook=call_webhook,
            kinds=ServedApi(more_versions=more_versions),
        )
        api.bootstrap(now(), 6443)
        crowd = ServerConnections(loop)
        server = await loop.create_server(lambda: EventLoopConnection(api, crowd), "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        api.set_address(url.removeprefix("http://"))
        stops.append(lambda: loop.call_soon_threadsafe(stop.set))
        servers.append(Serving(url, api, store, loop, crowd))
        started.set()
        await stop.wait()
        server.close()
        crowd.close()
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    if not started.wait(30):
        raise RuntimeError("the server did not start")
    try:
        yield servers[0]
    finally:
        stops[0]()
        thread.join(10)
