"""HTTP/1.1 on one connection: parses requests, calls the handler, and writes responses to a `Transport`.

Received data is buffered and parsed request by request. The next request is parsed only when the last one is answered,
so a client that sends requests without reading costs no more memory than one response. Responses are sent in pieces as
fast as the client reads. A stream pauses while its client does not read (see `watches`).
"""

from __future__ import annotations

import enum
from http import HTTPStatus
from typing import Protocol

import httptools

from batkube.api.connections.protocol.request_parser import ParsedRequest, RequestParser
from batkube.api.requests.messages import Request, Response, Stream

MAX_BODY_BYTES = 3 * 1024 * 1024
"""The largest accepted body (Kubernetes: apiserver/pkg/server/config.go, MaxRequestBodyBytes)."""

#: How much output may be buffered for a slow client before responses are paused.
_HIGH_WATER_BYTES = 32 * 1024
#: Queued requests up to this size do not count as buffered.
_SMALL_REQUEST_BYTES = 16 * 1024
#: How much of a response is written at a time.
_PIECE_BYTES = 256 * 1024
_HEAD_END = b"\r\n\r\n"
_EMPTY = memoryview(b"")
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Phase(enum.Enum):
    """What a connection waits for."""

    IDLE = "the next request"
    HEAD = "a request line and headers"
    BODY = "the rest of a body"
    STREAM = "the next event of a stream"
    READER = "the client to read"


class Handler(Protocol):
    """Handles requests."""

    def handle(self, request: Request) -> Response | Stream:
        """Return the response to `request`, complete or as a stream."""

    def too_large(self) -> Response:
        """Return the response to a request whose body exceeds the size limit."""


class Transport(Protocol):
    """The output of a connection: an asyncio transport, or the buffer of a polled socket."""

    def write(self, data: bytes) -> None:
        """Send `data` to the client."""

    def close(self) -> None:
        """Close the connection once everything is sent."""

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Set how much may be buffered before `pause_writing` is called."""


class Connection:
    """One client connection: parses requests, writes responses, and is the sink of a stream."""

    def __init__(self, handler: Handler, open_connections: set[Connection], max_body: int = MAX_BODY_BYTES) -> None:
        self._handler = handler
        self._open_connections = open_connections
        self._parser = RequestParser(max_body)
        #: Complete requests that are not handled yet: at most two, see `_parse_piece`.
        self._requests = self._parser.requests
        self._transport: Transport | None = None
        self._stream: Stream | None = None
        #: Whether the connection stays open for another request after the response.
        self._keeps_alive = True
        self._writable = True
        self._is_closing = False
        #: Whether the client has closed its sending side. Requests are still answered, but no stream is started.
        self._is_half_closed = False
        #: Received data, and the offset of its unparsed part.
        self._inbox = b""
        self._inbox_offset = 0
        #: The unsent rest of the current response.
        self._unsent = _EMPTY
        self._phase_changes = 0
        #: The `client_key` while a stream is open.
        self._stream_client_key = ""

    def attach(self, transport: Transport) -> None:
        """Write responses to `transport`."""
        self._transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        self._open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Discard the state of the connection and stop its stream."""
        self._transport = None
        self._open_connections.discard(self)
        self._parser.close()
        self._unsent = _EMPTY
        if self._stream is not None:
            self._stream.stop()
            self._stream = None

    @property
    def phase_changes(self) -> int:
        """A counter that grows whenever the connection starts to wait for something else."""
        return self._phase_changes + self._parser.phase_changes

    @property
    def phase(self) -> Phase:
        """What the connection waits for; a new one is in phase HEAD, so its first request has a short timeout."""
        if self._is_closing or not self._writable or self._unsent:
            return Phase.READER
        if self._stream is not None:
            return Phase.STREAM
        if self._parser.in_body:
            return Phase.BODY
        return Phase.HEAD if self._parser.in_head else Phase.IDLE

    @property
    def buffered_bytes(self) -> int:
        """The approximate memory that is held for this client while it is slow."""
        total = len(self._inbox) + self._parser.buffered_bytes + len(self._unsent) + self._queued_body_bytes
        total += 0 if self._writable else _HIGH_WATER_BYTES
        return total + (0 if self._stream is None else self._stream.buffered_bytes)

    # Requests

    def data_received(self, data: bytes) -> None:
        """Handle the requests in the received data; reject and close a connection that does not speak HTTP."""
        self.buffer(data)
        self.process_all()

    def buffer(self, data: bytes) -> None:
        """Buffer received data and parse the next request. Data received during a stream is ignored."""
        if self._stream is not None or self._is_closing:
            self._keeps_alive = False
            return
        if self._inbox:
            data = self._inbox[self._inbox_offset :] + data
        self._inbox, self._inbox_offset = data, 0
        self._parse()

    def process_all(self) -> None:
        """Handle everything that can be handled now."""
        while self.has_work:
            self.process_next()

    @property
    def is_drained(self) -> bool:
        """Whether nothing is buffered except small queued requests."""
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
        """Whether to stop reading: there is unparsed data, or the client does not read its responses."""
        return bool(self._inbox) or not self._writable or bool(self._unsent)

    @property
    def client_key(self) -> str:
        """The unverified credentials of the next request, which identify the client for fair queuing."""
        return _credentials(self._requests[0]) if self._requests else self._stream_client_key

    @property
    def has_work(self) -> bool:
        """Whether a request can be handled, or the stream continued, now."""
        if not self._writable or self._is_closing or self._unsent or self._transport is None:
            return False
        return bool(self._requests) if self._stream is None else self._stream.has_pending_data

    def process_next(self) -> None:
        """Handle the next complete request, or continue the stream."""
        if self._stream is not None:
            self._stream.resume()
            return
        incoming = self._requests[0]
        response = self._handler.too_large() if incoming.request is None else self._handler.handle(incoming.request)
        self._requests.popleft()
        self._phase_changes += 1
        if isinstance(response, Response):
            self._send_response(response, incoming.keep_alive, incoming.is_head)
            if self._inbox:
                self._parse()
        else:
            self._stream_client_key = _credentials(incoming)
            self._start_stream(response, incoming.keep_alive)

    def _parse(self) -> None:
        """Parse up to the end of the next complete request, once the last one is answered."""
        while self._inbox and not (self._requests or self._unsent or self._is_closing):
            self._parse_piece()
        if self._parser.expects_continue and not self._requests and self._transport is not None:
            self._parser.expects_continue = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _parse_piece(self) -> None:
        """Feed the parser up to the end of the next head, or everything if there is only one head.

        This completes at most two requests: one whose body precedes the head, and one that ends with the head.
        """
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
        """Answer an invalid request as Go's net/http does, and close the connection."""
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

    # Responses

    def _send_response(self, response: Response, keep_alive: bool, is_head: bool) -> None:
        assert self._transport is not None
        body = response.body
        head = (
            f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Unknown')}\r\n"
            f"Content-Type: {response.content_type}\r\nContent-Length: {len(body)}\r\n"
        )
        for name, value in response.headers:
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
        """Write as much of the response as the client accepts; after its end, close or parse the next request."""
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
        # Pipelined requests after the one that starts a stream are ignored.
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
        """Pause responses, because the client does not keep up."""
        self._writable = False
        self._phase_changes += 1

    def resume_writing(self) -> None:
        """Continue with the response, the stream, or the next request."""
        self._writable = True
        self._phase_changes += 1
        if self._unsent:
            self._send_unsent()
        self.process_all()

    # Sink

    @property
    def writable(self) -> bool:
        """Whether the client keeps up."""
        return self._writable and self._transport is not None

    def write(self, data: bytes) -> None:
        """Send a chunk."""
        if self._transport is not None:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def close(self) -> None:
        """End the stream. The connection stays open unless data was received, and ignored, during the stream."""
        self._stream = None
        self._phase_changes += 1
        if self._transport is not None:
            self._transport.write(b"0\r\n\r\n")
        if not self._keeps_alive:
            self.drop()

    def drop(self) -> None:
        """Close the connection once everything is sent."""
        self._is_closing = True
        self._phase_changes += 1
        if self._transport is not None:
            self._close_transport(self._transport)

    def _close_transport(self, transport: Transport) -> None:
        transport.close()


def _credentials(incoming: ParsedRequest) -> str:
    return "" if incoming.request is None else incoming.request.headers.get("authorization", "")
