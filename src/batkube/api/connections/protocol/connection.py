"""HTTP/1.1 on one connection, around the server's pure `handle`; who moves the bytes is another matter (`Transport`).

What has come waits in an inbox and is taken out request by request, the next one only when the answer
to the last is on its way: a client that asks and does not read costs what one answer costs, however much it asks. An
answer goes out in pieces as fast as the client reads; a stream pauses with its reader (see `watches`).
"""

from __future__ import annotations

import enum
from http import HTTPStatus
from typing import Protocol

import httptools

from batkube.api.connections.protocol.request_parser import ParsedRequest, RequestParser
from batkube.api.requests.messages import Request, Response, Stream

MAX_BODY_BYTES = 3 * 1024 * 1024
"""Kubernetes refuses larger bodies (apiserver: MaxRequestBodyBytes)."""

#: What may wait for a slow reader before its answers are held back, and what is written at a time.
_HIGH_WATER_BYTES = 32 * 1024
#: A request of no account while it waits for its turn.
_SMALL_REQUEST_BYTES = 16 * 1024
_PIECE_BYTES = 256 * 1024
_HEAD_END = b"\r\n\r\n"
_EMPTY = memoryview(b"")
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Phase(enum.Enum):
    """What a connection waits for."""

    IDLE = "the next request"
    HEAD = "a request line and headers"
    BODY = "the rest of a body"
    STREAM = "something to tell"
    READER = "the client to read"


class Handler(Protocol):
    """What answers requests."""

    def handle(self, request: Request) -> Response | Stream:
        """Return the answer to `request`, whole or as a stream."""

    def too_large(self) -> Response:
        """Answer a request whose body is larger than is taken."""


class Transport(Protocol):
    """What a connection writes to: an asyncio transport, or the buffer of a polled socket."""

    def write(self, data: bytes) -> None:
        """Put `data` on its way to the client."""

    def close(self) -> None:
        """End the connection once everything is sent."""

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Say from when on the reader counts as too slow."""


class Connection:
    """One client connection: parses requests, writes answers, and is the sink of a stream."""

    def __init__(self, handler: Handler, open_connections: set[Connection], max_body: int = MAX_BODY_BYTES) -> None:
        self._handler = handler
        self._open_connections = open_connections
        self._parser = RequestParser(max_body)
        #: Requests that have come as a whole and are not answered yet: at most two, see `_parse_piece`.
        self._requests = self._parser.requests
        self._transport: Transport | None = None
        self._stream: Stream | None = None
        #: Whether the client may send its next request here once the answer has gone out.
        self._keeps_alive = True
        self._writable = True
        self._is_closing = False
        #: Whether the client has ended its side: it is answered still, but is there for no stream.
        self._is_half_closed = False
        #: What has come and is not parsed yet, and from where on.
        self._inbox = b""
        self._inbox_offset = 0
        #: What is left of the answer that is going out.
        self._unsent = _EMPTY
        self._phase_changes = 0
        #: See `client`.
        self._stream_client_key = ""

    def attach(self, wire: Transport) -> None:
        """Write answers to `wire`."""
        self._transport = wire
        wire.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        self._open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and end its stream."""
        self._transport = None
        self._open_connections.discard(self)
        self._parser.close()
        self._unsent = _EMPTY
        if self._stream is not None:
            self._stream.stop()
            self._stream = None

    @property
    def phase_changes(self) -> int:
        """Grows whenever it begins to wait for something else."""
        return self._phase_changes + self._parser.phase_changes

    @property
    def phase(self) -> Phase:
        """What it waits for; the first request is waited for as impatiently as the rest of one that has begun."""
        if self._is_closing or not self._writable or self._unsent:
            return Phase.READER
        if self._stream is not None:
            return Phase.STREAM
        if self._parser.in_body:
            return Phase.BODY
        return Phase.HEAD if self._parser.in_head else Phase.IDLE

    @property
    def buffered_bytes(self) -> int:
        """Return about how much memory is kept for this client while it keeps us waiting."""
        held = len(self._inbox) + self._parser.buffered_bytes + len(self._unsent) + self._queued_body_bytes
        held += 0 if self._writable else _HIGH_WATER_BYTES
        return held + (0 if self._stream is None else self._stream.buffered_bytes)

    # Requests

    def data_received(self, data: bytes) -> None:
        """Answer what came; a client that does not speak HTTP is told so and dropped."""
        self.buffer(data)
        self.process_all()

    def buffer(self, data: bytes) -> None:
        """Keep what came until it is its turn; nothing is heard that a client says while it is told a stream."""
        if self._stream is not None or self._is_closing:
            self._keeps_alive = False
            return
        if self._inbox:
            data = self._inbox[self._inbox_offset :] + data
        self._inbox, self._inbox_offset = data, 0
        self._parse()

    def process_all(self) -> None:
        """Do what can be done now."""
        while self.has_work:
            self.process_next()

    @property
    def is_drained(self) -> bool:
        """Whether nothing is kept, or nothing but a small request that waits for its turn."""
        incoming = self._parser
        if self._inbox or self._unsent or not self._writable or self._stream is not None:
            return False
        if self._requests and self._queued_body_bytes > _SMALL_REQUEST_BYTES:
            return False
        return not (incoming.in_head or incoming.in_body)

    @property
    def _queued_body_bytes(self) -> int:
        return sum(len(each.request.body) for each in self._requests if each.request)

    @property
    def is_full(self) -> bool:
        """Whether enough has come: there is more to answer than one request, or the client does not read."""
        return bool(self._inbox) or not self._writable or bool(self._unsent)

    @property
    def client_key(self) -> str:
        """Who asks, as far as can be told before it is made sure of: the credentials that are shown."""
        return _credentials(self._requests[0]) if self._requests else self._stream_client_key

    @property
    def has_work(self) -> bool:
        """Whether a request, or the next piece of a stream, can be dealt with now."""
        if not self._writable or self._is_closing or self._unsent or self._transport is None:
            return False
        return bool(self._requests) if self._stream is None else self._stream.has_pending_data

    def process_next(self) -> None:
        """Answer the next request that has come as a whole, or go on with a stream."""
        if self._stream is not None:
            self._stream.resume()
            return
        incoming = self._requests[0]
        answer = self._handler.too_large() if incoming.request is None else self._handler.handle(incoming.request)
        self._requests.popleft()
        self._phase_changes += 1
        if isinstance(answer, Response):
            self._send_response(answer, incoming.keep_alive, incoming.is_head)
            if self._inbox:
                self._parse()
        else:
            self._stream_client_key = _credentials(incoming)
            self._start_stream(answer, incoming.keep_alive)

    def _parse(self) -> None:
        """Parse up to the end of the next request that has come as a whole, once the last one is answered."""
        while self._inbox and not (self._requests or self._unsent or self._is_closing):
            self._parse_piece()
        if self._parser.expects_continue and not self._requests and self._transport is not None:
            self._parser.expects_continue = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _parse_piece(self) -> None:
        """Parse up to the end of a head, or all if there is but one: at most the request before it and its own end."""
        inbox, begin = self._inbox, self._inbox_offset
        end = inbox.find(_HEAD_END, begin) + len(_HEAD_END)
        if end == len(inbox) or end < len(_HEAD_END) or inbox.find(_HEAD_END, end) < 0:
            piece: bytes | memoryview = memoryview(inbox)[begin:] if begin else inbox
            self._inbox, self._inbox_offset = b"", 0
        else:
            piece, self._inbox_offset = memoryview(inbox)[begin:end], end
        try:
            self._parser.feed(piece)
        except httptools.HttpParserUpgrade:
            self._keeps_alive = False
            self._inbox = b""
        except httptools.HttpParserError:
            self._reject(431 if self._parser.is_head_too_large else 400)
            return
        if self._requests:
            return
        if self._parser.is_head_too_large:
            self._reject(431)
        elif self._parser.should_abort_body:
            self._parser.reset()
            self._inbox = b""
            self._requests.append(ParsedRequest(None, keep_alive=False, is_head=False))

    def _reject(self, status: int) -> None:
        """Answer what is no request, as Go's net/http does, and end the connection."""
        reason = f"{status} {_REASONS[status]}"
        self._requests.clear()
        self._inbox = b""
        if self._transport is not None:
            self._transport.write(
                f"HTTP/1.1 {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Connection: close\r\n\r\n{reason}".encode()
            )
        self._parser.reset()
        self.drop()

    # Answers

    def _send_response(self, answer: Response, keep_alive: bool, is_head: bool) -> None:
        assert self._transport is not None
        body = answer.body
        head = (
            f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Unknown')}\r\n"
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(body)}\r\n"
        )
        for name, value in answer.headers:
            head += f"{name}: {value}\r\n"
        if not keep_alive:
            self._keeps_alive = False
            head += "Connection: close\r\n"
        data = f"{head}\r\n".encode()
        if is_head or len(body) <= _PIECE_BYTES:
            self._transport.write(data if is_head else data + body)
            if not self._keeps_alive:
                self.drop()
        else:
            self._transport.write(data)
            self._unsent = memoryview(body)
            self._send_unsent()

    def _send_unsent(self) -> None:
        """Write as much of the answer as the client takes; when all is written, the connection may be over."""
        while self._unsent and self._writable and self._transport is not None:
            piece, self._unsent = self._unsent[:_PIECE_BYTES], self._unsent[_PIECE_BYTES:]
            self._transport.write(bytes(piece))
        if not self._unsent:
            self._unsent = _EMPTY
            if not self._keeps_alive:
                self.drop()
            elif self._inbox:
                self._parse()

    def _start_stream(self, stream: Stream, keep_alive: bool) -> None:
        assert self._transport is not None
        if self._is_half_closed:
            stream.stop()
            self.drop()
            return
        # A client that has spoken on already is not heard.
        self._keeps_alive = self._keeps_alive and keep_alive and not (self._requests or self._inbox)
        self._requests.clear()
        self._inbox = b""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {stream.content_type}\r\nTransfer-Encoding: chunked\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in stream.headers)
        head += "\r\n" if keep_alive else "Connection: close\r\n\r\n"
        self._transport.write(head.encode())
        self._stream = stream
        stream.start(self)

    def pause_writing(self) -> None:
        """Hold answers back: the reader does not keep up."""
        self._writable = False
        self._phase_changes += 1

    def resume_writing(self) -> None:
        """Go on with the answer, the stream, or the next request."""
        self._writable = True
        self._phase_changes += 1
        if self._unsent:
            self._send_unsent()
        self.process_all()

    # Sink

    @property
    def writable(self) -> bool:
        """Whether the reader keeps up."""
        return self._writable and self._transport is not None

    def write(self, data: bytes) -> None:
        """Send a chunk."""
        if self._transport is not None:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def close(self) -> None:
        """End the stream; the connection serves on, unless the client spoke in the middle of it and was not heard."""
        self._stream = None
        self._phase_changes += 1
        if self._transport is not None:
            self._transport.write(b"0\r\n\r\n")
        if not self._keeps_alive:
            self.drop()

    def drop(self) -> None:
        """End the connection once what was written is sent."""
        self._is_closing = True
        self._phase_changes += 1
        if self._transport is not None:
            self._transport.close()


def _credentials(incoming: ParsedRequest) -> str:
    return "" if incoming.request is None else incoming.request.headers.get("authorization", "")
