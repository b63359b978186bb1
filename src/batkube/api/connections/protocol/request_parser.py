"""Requests out of bytes: httptools parses, and what it tells of is collected here, within bounds.

A line, a header or a chunk may come in any number of pieces, and the parser keeps what is not complete yet; so what is
counted is what it was fed, from the first byte of a head to its last, and between two pieces of a body.
"""

from __future__ import annotations

from collections import deque
from urllib.parse import parse_qs, unquote

import httptools
import msgspec

from batkube.api.requests.messages import Request

#: The request line and all headers (Kubernetes: apiserver/pkg/server/secure_serving.go, MaxHeaderBytes).
_MAX_HEAD_BYTES = 1024 * 1024
#: Parameters in a query; no client of Kubernetes has a use for more than a dozen.
_MAX_PARAMETERS = 1000
#: The headers of nearly all requests, as Go writes their names, so that these are not put together every time.
_COMMON_HEADER_NAMES = {
    name.encode("ascii"): name.lower()
    for name in ("Host", "User-Agent", "Accept", "Accept-Encoding", "Authorization", "Content-Type", "Content-Length")
}


class ParsedRequest(msgspec.Struct, gc=False):
    """A request that has come as a whole, and how its answer has to be sent."""

    #: None if it was larger than is taken.
    request: Request | None
    keep_alive: bool
    is_head: bool


class RequestParser:
    """What comes on one connection; whatever the callbacks of httptools raise is taken for a fault of the client's."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        #: It knows us as we know it, so it is there only between the first byte and the end: else a connection that is
        #: gone would stay until all garbage is collected.
        self._http_parser: httptools.HttpRequestParser | None = None
        #: Requests that have come as a whole and are not answered yet.
        self.requests: deque[ParsedRequest] = deque()
        #: Grows with every part of a request that begins.
        self.phase_changes = 0
        self.in_head, self.in_body = True, False
        self.reset()

    def reset(self) -> None:
        """Forget what has come of a request."""
        self._url: list[bytes] = []
        self._headers: dict[str, str] = {}
        self._repeated_headers: dict[str, list[str]] | None = None
        #: The size of what has come of the line and the headers; or since the last piece of the body.
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self.expects_continue = False

    def feed(self, piece: bytes | memoryview) -> None:
        """Parse `piece`; raises httptools.HttpParserError, or its HttpParserUpgrade."""
        self._head_bytes += len(piece)
        if self._http_parser is None:
            self._http_parser = httptools.HttpRequestParser(self)
        self._http_parser.feed_data(piece)

    def close(self) -> None:
        """Take note that no more will come."""
        self._http_parser = None

    @property
    def buffered_bytes(self) -> int:
        """About how much is kept of a request that has not come as a whole."""
        return self._head_bytes + min(self._body_bytes, self._max_body)

    @property
    def is_head_too_large(self) -> bool:
        """Whether the line and headers are too long; those before a body, within or behind one that comes in chunks."""
        return self._head_bytes > _MAX_HEAD_BYTES

    @property
    def should_abort_body(self) -> bool:
        """Whether the end of the body is not worth waiting for: it will not be taken."""
        return self._body_bytes > 2 * self._max_body

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self.phase_changes += 1
        self.in_head = True

    def on_url(self, url: bytes) -> None:
        """Collect the target, which may come in pieces."""
        self._url.append(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; repeated ones are joined by a comma, as HTTP allows."""
        key, text = _COMMON_HEADER_NAMES.get(name) or name.decode("latin-1").lower(), value.decode("latin-1")
        if key in self._headers:
            self._repeated_headers = self._repeated_headers or {}
            self._repeated_headers.setdefault(key, [self._headers[key]]).append(text)
        else:
            self._headers[key] = text

    def on_headers_complete(self) -> None:
        """Invite the body, should the client wait for it."""
        self.in_head, self.in_body = False, True
        self.phase_changes += 1
        if self._head_bytes > _MAX_HEAD_BYTES and self._head_size() > _MAX_HEAD_BYTES:
            raise httptools.HttpParserError("headers too large")
        self._head_bytes = 0
        if "expect" in self._headers:
            self.expects_continue = self._headers["expect"].lower() == "100-continue"

    def _head_size(self) -> int:
        """Return how long the head was: the piece with its end may have had the beginning of a body, too."""
        headers = [
            *self._headers.items(),
            *((name, "".join(texts)) for name, texts in (self._repeated_headers or {}).items()),
        ]
        return sum(map(len, self._url)) + sum(len(name) + len(text) for name, text in headers)

    def on_body(self, body: bytes) -> None:
        """Collect the body as far as it is allowed to go."""
        self.expects_continue = False
        self._head_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes <= self._max_body:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Keep the request to be answered."""
        assert self._http_parser is not None
        self.in_body = self.expects_continue = False
        method = self._http_parser.get_method()
        request = self._build_request(method) if self._body_bytes <= self._max_body else None
        self.reset()
        self.requests.append(ParsedRequest(request, self._http_parser.should_keep_alive(), method == b"HEAD"))

    def _build_request(self, method: bytes) -> Request:
        target, _, query = b"".join(self._url).decode("latin-1").partition("?")
        if not target.startswith("/"):
            target = "/" + target.partition("://")[2].partition("/")[2] if "://" in target else "/" + target
        if self._repeated_headers:
            self._headers.update((name, ", ".join(values)) for name, values in self._repeated_headers.items())
        return Request(
            method.decode("latin-1"),
            unquote(target) if "%" in target else target,
            parse_qs(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS) if query else {},
            self._headers,
            b"".join(self._body),
        )
