"""HTTP/1.1 on one connection, around the server's pure `handle`; who moves the bytes is another matter (`Wire`).

httptools parses; a connection answers one request after another and, when an answer is a stream, passes chunks on until
either side ends it. A reader that is too slow pauses its stream (see `watches`), so that nothing piles up here.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qs, unquote

import httptools

from batkube.api.messages import Request, Response, Stream

MAX_BODY = 3 * 1024 * 1024
"""Kubernetes refuses larger bodies (apiserver: MaxRequestBodyBytes)."""

_MAX_HEADERS = 1024 * 1024
_HIGH_WATER = 1024 * 1024
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Handler(Protocol):
    """What answers requests."""

    def handle(self, request: Request) -> Response | Stream:
        """Answer `request`."""

    def too_large(self) -> Response:
        """Answer a request whose body is larger than is taken."""


class Wire(Protocol):
    """What a connection writes to: an asyncio transport, or the buffer of a polled socket."""

    def write(self, data: bytes) -> None:
        """Send."""

    def close(self) -> None:
        """End the connection once everything is sent."""

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Say from when on the reader counts as too slow."""


class Connection:
    """One client connection: parses requests, writes answers, and is the sink of a stream."""

    def __init__(self, handler: Handler, open_connections: set[Connection], max_body: int = MAX_BODY) -> None:
        self._handler = handler
        self._max_body = max_body
        self._open = open_connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: Wire | None = None
        self._stream: Stream | None = None
        #: Whether the client may send its next request here once the stream has ended.
        self._goes_on = True
        self._writable = True
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._size = 0

    def serve_over(self, wire: Wire) -> None:
        """Write answers to `wire`."""
        self._transport = wire
        wire.set_write_buffer_limits(high=_HIGH_WATER)
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and end its stream."""
        self._transport = None
        self._open.discard(self)
        if self._stream is not None:
            self._stream.stop()
            self._stream = None

    def data_received(self, data: bytes) -> None:
        """Parse what came; a client that does not speak HTTP is told so and dropped."""
        if self._stream is not None:
            self._goes_on = False
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.drop()
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.write(
                    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
                    b"Connection: close\r\n\r\n400 Bad Request"
                )
            self.drop()

    def pause_writing(self) -> None:
        """Hold the stream back: the reader does not keep up."""
        self._writable = False

    def resume_writing(self) -> None:
        """Let the stream go on."""
        self._writable = True
        if self._stream is not None:
            self._stream.resume()

    # httptools callbacks

    def on_url(self, url: bytes) -> None:
        """Collect the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; repeated ones are joined by a comma, as HTTP allows."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _MAX_HEADERS:
            raise httptools.HttpParserError("headers too large")
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Invite the body, should the client wait for it."""
        if self._headers.get("expect", "").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Collect the body as far as it is allowed to go."""
        self._size += len(body)
        if self._size <= self._max_body:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer the request."""
        keep_alive = self._parser.should_keep_alive()
        if self._stream is not None or self._transport is None:
            self._goes_on = False
            return
        if self._size > self._max_body:
            answer: Response | Stream = self._handler.too_large()
        else:
            answer = self._handler.handle(self._request())
        is_head = self._parser.get_method() == b"HEAD"
        self._begin()
        if isinstance(answer, Response):
            self._respond(answer, keep_alive, is_head)
        else:
            self._start(answer, keep_alive)

    def _request(self) -> Request:
        target, _, query = self._url.decode("latin-1").partition("?")
        if not target.startswith("/"):
            target = "/" + target.partition("://")[2].partition("/")[2] if "://" in target else "/" + target
        return Request(
            self._parser.get_method().decode("latin-1"),
            unquote(target),
            parse_qs(query, keep_blank_values=True) if query else {},
            self._headers,
            b"".join(self._body),
        )

    # Answers

    def _respond(self, answer: Response, keep_alive: bool, is_head: bool) -> None:
        if self._transport is None:
            return
        head = [
            f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Unknown')}\r\n",
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n",
        ]
        head.extend(f"{name}: {value}\r\n" for name, value in answer.headers)
        if not keep_alive:
            head.append("Connection: close\r\n")
        head.append("\r\n")
        data = "".join(head).encode()
        self._transport.write(data if is_head else data + answer.body)
        if not keep_alive:
            self.drop()

    def _start(self, stream: Stream, keep_alive: bool) -> None:
        assert self._transport is not None
        self._goes_on = keep_alive
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {stream.content_type}\r\nTransfer-Encoding: chunked\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in stream.headers)
        head += "\r\n" if keep_alive else "Connection: close\r\n\r\n"
        self._transport.write(head.encode())
        self._stream = stream
        stream.start(self)

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
        if self._transport is not None:
            self._transport.write(b"0\r\n\r\n")
        if not self._goes_on:
            self.drop()

    def drop(self) -> None:
        """End the connection, whatever it is at."""
        if self._transport is not None:
            self._transport.close()
