"""Connections of the API server in an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from batkube.api.connections.event_loop.buffer_limit import MAX_BUFFERED_BYTES, BufferLimit
from batkube.api.connections.event_loop.fair_queue import FairQueue, assume_newcomers
from batkube.api.connections.event_loop.timeouts import LIMITS_S, TimeoutMonitor
from batkube.api.connections.event_loop.webhook_transport import WebhookThreads
from batkube.api.connections.event_loop.worker_thread import WorkerThread
from batkube.api.connections.protocol.connection import Connection, Handler, Phase, Transport
from batkube.api.requests.messages import NeedsWorkerThread
from batkube.api.requests.webhooks.calls import PendingWebhookCalls

#: From how many bytes on chunks of a stream are sent at once.
_MAX_UNFLUSHED_BYTES = 32 * 1024
#: Bodies above this size may be parsed in the worker thread.
_LONG_BODY_BYTES = 16 * 1024


class EventLoopConnection(Connection, asyncio.Protocol):
    """A connection in an event loop; it stops reading while it has unhandled requests."""

    _transport: asyncio.Transport | None

    def __init__(self, handler: Handler, server: ServerConnections) -> None:
        super().__init__(handler, server.connections)
        self._server_connections = server
        self._is_reading = True
        #: Whether `BufferLimit` knows of buffered bytes of this connection.
        self._is_tracked = False
        #: Chunks of the stream that were written in this iteration of the event loop, and their size.
        self._chunks: list[bytes] = []
        self._chunk_bytes = 0
        #: Whether the transport is calling `resume_writing`.
        self._is_resuming = False
        #: See `fair_queue` and `timeouts`.
        self.virtual_finish_s = 0.0
        self.last_progress = (-1, server.loop.time())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start using the transport."""
        self.attach(cast(asyncio.Transport, transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Discard the state of the connection."""
        super().connection_lost(exc)
        self._server_connections.buffers.forget(self)

    def data_received(self, data: bytes) -> None:
        """Buffer the data, and submit complete requests to the queue."""
        self.buffer(data)
        if self.has_work:
            self._server_connections.queue.submit(self)
        if self._is_tracked or not self.is_drained:
            self._update_flow_control()

    def process_all(self) -> None:
        """Submit complete requests to the queue."""
        if self.has_work:
            self._server_connections.queue.submit(self)

    def eof_received(self) -> bool:
        """Handle the end of the client's data; return whether to keep the connection open for remaining requests.

        asyncio closes a TLS connection in any case, and logs a warning if it is asked to keep it open.
        """
        self._keeps_alive, self._is_half_closed = False, True
        has_more = self.is_full or bool(self._requests)
        self._is_closing |= not has_more
        is_tls = self._transport is not None and self._transport.get_extra_info("sslcontext") is not None
        return has_more and not is_tls

    def process_next(self) -> None:
        """Handle a request, unless the client has disconnected."""
        transport = self._transport
        if transport is None or transport.is_closing():
            self._is_closing = True
            return
        request = self._requests[0].request if self._requests else None
        if request is not None and len(request.body) > _LONG_BODY_BYTES:
            request.may_defer = request.parsed_body is None
        try:
            # Faster than super(), which is looked up for every request.
            Connection.process_next(self)
        except NeedsWorkerThread as deferred:
            # Pause the connection meanwhile, as for a slow reader.
            self.pause_writing()
            self._server_connections.worker_thread.run(deferred.work, self._retry)
        except PendingWebhookCalls as pending:
            self.pause_writing()
            self._server_connections.webhook_threads.run(pending.calls, self._retry)
        if self._is_tracked or not self._is_reading:
            self._update_flow_control()

    def _retry(self) -> None:
        if self._transport is not None:
            self.resume_writing()

    def write(self, data: bytes) -> None:
        """Send a chunk, together with the others of this iteration of the event loop, since system calls are slow."""
        if not self._chunks:
            self._server_connections.flush_later(self)
        self._chunks.append(data)
        self._chunk_bytes += len(data)
        if self._chunk_bytes >= _MAX_UNFLUSHED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send the chunks that were written."""
        if self._chunks:
            data, self._chunks, self._chunk_bytes = b"".join(self._chunks), [], 0
            super().write(data)

    def close(self) -> None:
        """End the stream."""
        self.flush()
        super().close()

    def drop(self) -> None:
        """Close the connection once everything is sent."""
        self.flush()
        super().drop()

    def pause_writing(self) -> None:
        """Pause responses, because the client does not keep up."""
        super().pause_writing()
        self._update_flow_control()

    def resume_writing(self) -> None:
        """Continue with the response, the stream, or the next request."""
        self._is_resuming = True
        try:
            super().resume_writing()
        finally:
            self._is_resuming = False
        self._update_flow_control()

    def _close_transport(self, transport: Transport) -> None:
        """Close the transport, but not while it calls `resume_writing`: asyncio would close it a second time."""
        if self._is_resuming:
            self._server_connections.loop.call_soon(transport.close)
        else:
            transport.close()

    def abort(self) -> None:
        """Close the connection at once, discarding unsent data."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def _update_flow_control(self) -> None:
        """Pause or resume reading, and report the buffered bytes."""
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
    """All connections of a server, with their shared request queue, worker thread, buffer limit and timeouts."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits_s: Mapping[Phase, float] = LIMITS_S,
        held_bytes: int = MAX_BUFFERED_BYTES,
        has_newcomers: Callable[[], bool] = assume_newcomers,
        webhook_threads: WebhookThreads | None = None,
    ) -> None:
        """For `has_newcomers` see `FairQueue`. `webhook_threads` are those that the server's components use, too."""
        self.loop = loop
        self.connections: set[Connection] = set()
        self.queue = FairQueue(loop, has_newcomers)
        self.worker_thread = WorkerThread(loop)
        self.webhook_threads = webhook_threads or WebhookThreads(loop)
        self.buffers = BufferLimit(held_bytes)
        #: Connections with chunks that were not sent yet.
        self._unflushed: list[EventLoopConnection] = []
        self._timeouts = TimeoutMonitor(loop, self._event_loop_connections, limits_s)

    def flush_later(self, connection: EventLoopConnection) -> None:
        """Flush a connection in the next iteration of the event loop."""
        if not self._unflushed:
            self.loop.call_soon(self._flush)
        self._unflushed.append(connection)

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, []
        for connection in unflushed:
            connection.flush()

    def _event_loop_connections(self) -> list[EventLoopConnection]:
        return cast(list[EventLoopConnection], list(self.connections))

    def idle_connections(self) -> list[EventLoopConnection]:
        """Return the connections that wait for a request, the longest idle first."""
        idle = [each for each in self._event_loop_connections() if each.phase in (Phase.IDLE, Phase.HEAD)]
        return sorted(idle, key=lambda each: each.last_progress[1])

    def drop_all(self) -> None:
        """Close every connection once its pending data is sent."""
        for connection in sorted(self.connections, key=id):
            connection.drop()

    def close(self) -> None:
        """Close every connection and stop the timeouts."""
        self._timeouts.stop()
        self.drop_all()


class EventLoopTimers:
    """Timers in real time. Watches of `serve` time out in real time, since that is the client's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in `seconds` of real time, whatever the speed of the virtual clock."""
        return self._loop.call_later(seconds, callback).cancel
