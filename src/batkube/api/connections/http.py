"""The API server on sockets of the real world, within an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from batkube.api.connections.buffer_limit import MAX_HELD, BufferLimit
from batkube.api.connections.connection import Connection, Handler, Phase
from batkube.api.connections.fair_queueing import FairQueue, somebody_may_come
from batkube.api.connections.outside_calls import do_apart
from batkube.api.connections.timeouts import LIMITS_S, Timeouts
from batkube.api.connections.worker_thread import WorkerThread
from batkube.api.requests.messages import Laborious
from batkube.api.requests.outside import Outside

#: A body that may take long to read.
_LONG = 16 * 1024


class LoopConnection(Connection, asyncio.Protocol):
    """A connection whose bytes an event loop moves; it reads on when what it has read is dealt with."""

    _transport: asyncio.Transport | None

    def __init__(self, handler: Handler, crowd: Crowd) -> None:
        super().__init__(handler, crowd.connections)
        self._crowd = crowd
        self._is_reading = True
        #: Whether anything is kept for the client, as far as the crowd knows.
        self._is_known = False
        #: See `fair_queueing` and `timeouts`.
        self.served_until = 0.0
        self.seen = (-1, crowd.loop.time())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self.serve_over(cast(asyncio.Transport, transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything about it."""
        super().connection_lost(exc)
        self._crowd.buffers.forget(self)

    def data_received(self, data: bytes) -> None:
        """Answer what came when it is this connection's turn."""
        self.receive(data)
        if self.has_work:
            self._crowd.queue.ask(self)
        if self._is_known or not self.is_done:
            self._moved()

    def go_on(self) -> None:
        """Do what can be done when it is this connection's turn."""
        if self.has_work:
            self._crowd.queue.ask(self)

    def eof_received(self) -> bool:
        """Answer what has come before the client ended its side; return whether there is anything left to answer."""
        self._goes_on, self._is_ended = False, True
        has_more = self.is_full or bool(self._requests)
        self._is_closing |= not has_more
        return has_more

    def proceed(self) -> None:
        """Answer a request; none of a client that is known to be gone."""
        transport = self._transport
        if transport is None or transport.is_closing():
            self._is_closing = True
            return
        request = self._requests[0].request if self._requests else None
        if request is not None and len(request.body) > _LONG:
            request.in_haste = request.reading is None
        try:
            # Without `super`, which is looked up anew for every request.
            Connection.proceed(self)
        except Laborious as laborious:
            # Answers are held back meanwhile, as for a reader who does not keep up.
            self.pause_writing()
            self._crowd.worker_thread.do(laborious.work, self._ask_again)
        except Outside as outside:
            self.pause_writing()
            do_apart(self._crowd.loop, outside.works, self._ask_again)
        if self._is_known or not self._is_reading:
            self._moved()

    def _ask_again(self) -> None:
        if self._transport is not None:
            self.resume_writing()

    def pause_writing(self) -> None:
        """Hold answers back: the reader does not keep up."""
        super().pause_writing()
        self._moved()

    def resume_writing(self) -> None:
        """Go on with the answer, the stream, or the next request."""
        super().resume_writing()
        self._moved()

    def abort(self) -> None:
        """End the connection at once; what was not sent is lost."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def _moved(self) -> None:
        """Read only while nothing waits to be answered, and have it known what is kept for the client."""
        reads = not self.is_full
        if reads is not self._is_reading and self._transport is not None:
            self._is_reading = reads
            if reads:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
        self._is_known = not self.is_done
        self._crowd.buffers.moved(self)


class Crowd:
    """All connections of a server, and what they share: the time of its thread, and memory for those who are slow."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits_s: Mapping[Phase, float] = LIMITS_S,
        held_bytes: int = MAX_HELD,
        has_newcomers: Callable[[], bool] = somebody_may_come,
    ) -> None:
        """For `has_newcomers` see `FairQueue`."""
        self.loop = loop
        self.connections: set[Connection] = set()
        self.queue = FairQueue(loop, has_newcomers)
        self.worker_thread = WorkerThread(loop)
        self.buffers = BufferLimit(held_bytes)
        self._timeouts = Timeouts(loop, self._members, limits_s)

    def _members(self) -> list[LoopConnection]:
        return cast(list[LoopConnection], list(self.connections))

    def quiet(self) -> list[LoopConnection]:
        """Return the connections that wait for a request, the one that has waited longest first."""
        waiting = [one for one in self._members() if one.phase in (Phase.IDLE, Phase.HEAD)]
        return sorted(waiting, key=lambda one: one.seen[1])

    def disconnect(self) -> None:
        """Drop every connection."""
        for connection in sorted(self.connections, key=id):
            connection.drop()

    def end(self) -> None:
        """Drop every connection, and be impatient with nobody any more."""
        self._timeouts.end()
        self.disconnect()


class LoopTimers:
    """Timers on the real clock of the event loop: how long a watch lasts is agreed with a client, who lives there."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in `seconds` of real time, whatever the speed of the virtual clock."""
        return self._loop.call_later(seconds, callback).cancel
