"""The API server on sockets of the real world, within an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from batkube.api.connections.event_loop.buffer_limit import MAX_BUFFERED_BYTES, BufferLimit
from batkube.api.connections.event_loop.fair_queue import FairQueue, assume_newcomers
from batkube.api.connections.event_loop.timeouts import LIMITS_S, TimeoutMonitor
from batkube.api.connections.event_loop.webhook_transport import run_in_threads
from batkube.api.connections.event_loop.worker_thread import WorkerThread
from batkube.api.connections.protocol.connection import Connection, Handler, Phase
from batkube.api.requests.messages import NeedsWorkerThread
from batkube.api.requests.webhooks.calls import PendingWebhookCalls

#: A body that may take long to read.
_LONG_BODY_BYTES = 16 * 1024


class EventLoopConnection(Connection, asyncio.Protocol):
    """A connection whose bytes an event loop moves; it reads on when what it has read is dealt with."""

    _transport: asyncio.Transport | None

    def __init__(self, handler: Handler, crowd: ServerConnections) -> None:
        super().__init__(handler, crowd.connections)
        self._server_connections = crowd
        self._is_reading = True
        #: Whether anything is kept for the client, as far as the crowd knows.
        self._is_tracked = False
        #: See `fair_queueing` and `timeouts`.
        self.virtual_finish_s = 0.0
        self.last_progress = (-1, crowd.loop.time())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self.attach(cast(asyncio.Transport, transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything about it."""
        super().connection_lost(exc)
        self._server_connections.buffers.forget(self)

    def data_received(self, data: bytes) -> None:
        """Answer what came when it is this connection's turn."""
        self.buffer(data)
        if self.has_work:
            self._server_connections.queue.submit(self)
        if self._is_tracked or not self.is_drained:
            self._update_flow_control()

    def process_all(self) -> None:
        """Do what can be done when it is this connection's turn."""
        if self.has_work:
            self._server_connections.queue.submit(self)

    def eof_received(self) -> bool:
        """Answer what has come before the client ended its side; return whether there is anything left to answer."""
        self._goes_on, self._is_ended = False, True
        has_more = self.is_full or bool(self._requests)
        self._is_closing |= not has_more
        return has_more

    def process_next(self) -> None:
        """Answer a request; none of a client that is known to be gone."""
        transport = self._transport
        if transport is None or transport.is_closing():
            self._is_closing = True
            return
        request = self._requests[0].request if self._requests else None
        if request is not None and len(request.body) > _LONG_BODY_BYTES:
            request.may_defer = request.parsed_body is None
        try:
            # Without `super`, which is looked up anew for every request.
            Connection.process_next(self)
        except NeedsWorkerThread as laborious:
            # Answers are held back meanwhile, as for a reader who does not keep up.
            self.pause_writing()
            self._server_connections.worker_thread.run(laborious.work, self._retry)
        except PendingWebhookCalls as outside:
            self.pause_writing()
            run_in_threads(self._server_connections.loop, outside.calls, self._retry)
        if self._is_tracked or not self._is_reading:
            self._update_flow_control()

    def _retry(self) -> None:
        if self._transport is not None:
            self.resume_writing()

    def pause_writing(self) -> None:
        """Hold answers back: the reader does not keep up."""
        super().pause_writing()
        self._update_flow_control()

    def resume_writing(self) -> None:
        """Go on with the answer, the stream, or the next request."""
        super().resume_writing()
        self._update_flow_control()

    def abort(self) -> None:
        """End the connection at once; what was not sent is lost."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def _update_flow_control(self) -> None:
        """Read only while nothing waits to be answered, and have it known what is kept for the client."""
        reads = not self.is_full
        if reads is not self._is_reading and self._transport is not None:
            self._is_reading = reads
            if reads:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
        self._is_tracked = not self.is_drained
        self._server_connections.buffers.update(self)


class ServerConnections:
    """All connections of a server, and what they share: the time of its thread, and memory for those who are slow."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits_s: Mapping[Phase, float] = LIMITS_S,
        held_bytes: int = MAX_BUFFERED_BYTES,
        has_newcomers: Callable[[], bool] = assume_newcomers,
    ) -> None:
        """For `has_newcomers` see `FairQueue`."""
        self.loop = loop
        self.connections: set[Connection] = set()
        self.queue = FairQueue(loop, has_newcomers)
        self.worker_thread = WorkerThread(loop)
        self.buffers = BufferLimit(held_bytes)
        self._timeouts = TimeoutMonitor(loop, self._event_loop_connections, limits_s)

    def _event_loop_connections(self) -> list[EventLoopConnection]:
        return cast(list[EventLoopConnection], list(self.connections))

    def idle_connections(self) -> list[EventLoopConnection]:
        """Return the connections that wait for a request, the one that has waited longest first."""
        waiting = [one for one in self._event_loop_connections() if one.phase in (Phase.IDLE, Phase.HEAD)]
        return sorted(waiting, key=lambda one: one.last_progress[1])

    def drop_all(self) -> None:
        """Drop every connection."""
        for connection in sorted(self.connections, key=id):
            connection.drop()

    def close(self) -> None:
        """Drop every connection, and be impatient with nobody any more."""
        self._timeouts.stop()
        self.drop_all()


class EventLoopTimers:
    """Timers on the real clock of the event loop: how long a watch lasts is agreed with a client, who lives there."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in `seconds` of real time, whatever the speed of the virtual clock."""
        return self._loop.call_later(seconds, callback).cancel
