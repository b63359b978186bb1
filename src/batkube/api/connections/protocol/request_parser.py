"""Parse HTTP requests with httptools, within limits on the sizes of head and body.

httptools buffers incomplete lines, headers and chunk headers itself. The limits therefore count the bytes that are fed
to it: from the first to the last byte of a head, and between two pieces of a body.
"""

from __future__ import annotations

from collections import deque
from urllib.parse import parse_qs, unquote

import httptools
import msgspec

from batkube.api.requests.messages import Request

#: The request line and all headers (Kubernetes: apiserver/pkg/server/secure_serving.go, MaxHeaderBytes).
_MAX_HEAD_BYTES = 1024 * 1024
#: Maximal number of query parameters; Kubernetes clients use no more than a dozen.
_MAX_PARAMETERS = 1000
#: Lower-case names of common headers by their spelling in Go, a cache.
_COMMON_HEADER_NAMES = {
    name.encode("ascii"): name.lower()
    for name in ("Host", "User-Agent", "Accept", "Accept-Encoding", "Authorization", "Content-Type", "Content-Length")
}


class ParsedRequest(msgspec.Struct, gc=False):
    """A complete request, and how to send its response."""

    #: None if the body exceeds the size limit.
    request: Request | None
    keep_alive: bool
    is_head: bool


class RequestParser:
    """Parses the requests of one connection. An exception in a callback counts as a malformed request."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        #: None before the first byte and after the end, since the parser and this object refer to each other: a closed
        #: connection would otherwise stay in memory until the next full garbage collection.
        self._http_parser: httptools.HttpRequestParser | None = None
        #: Complete requests that are not handled yet.
        self.requests: deque[ParsedRequest] = deque()
        #: Grows with every head and every body that begins.
        self.phase_changes = 0
        self.in_head, self.in_body = True, False
        self.reset()

    def reset(self) -> None:
        """Discard the current request."""
        self._url: list[bytes] = []
        self._headers: dict[str, str] = {}
        self._repeated_headers: dict[str, list[str]] | None = None
        #: Bytes fed since the start of the head, or since the last piece of the body.
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
        """Release the parser; no more data will arrive."""
        self._http_parser = None

    @property
    def buffered_bytes(self) -> int:
        """The approximate size of the incomplete request."""
        return self._head_bytes + min(self._body_bytes, self._max_body)

    @property
    def is_head_too_large(self) -> bool:
        """Whether the request line and headers are too long; also chunk headers and trailers of a chunked body."""
        return self._head_bytes > _MAX_HEAD_BYTES

    @property
    def should_abort_body(self) -> bool:
        """Whether the body exceeds the limit by so much that it is not worth reading to its end."""
        return self._body_bytes > 2 * self._max_body

    def on_message_begin(self) -> None:
        """Start a request."""
        self.phase_changes += 1
        self.in_head = True

    def on_url(self, url: bytes) -> None:
        """Collect a piece of the request target."""
        self._url.append(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; repeated ones are joined with commas later, as HTTP allows."""
        key, text = _COMMON_HEADER_NAMES.get(name) or name.decode("latin-1").lower(), value.decode("latin-1")
        if key in self._headers:
            self._repeated_headers = self._repeated_headers or {}
            self._repeated_headers.setdefault(key, [self._headers[key]]).append(text)
        else:
            self._headers[key] = text

    def on_headers_complete(self) -> None:
        """Check the size of the head, and note whether the client expects `100 Continue`."""
        self.in_head, self.in_body = False, True
        self.phase_changes += 1
        if self._head_bytes > _MAX_HEAD_BYTES and self._head_size() > _MAX_HEAD_BYTES:
            raise httptools.HttpParserError("headers too large")
        self._head_bytes = 0
        if "expect" in self._headers:
            self.expects_continue = self._headers["expect"].lower() == "100-continue"

    def _head_size(self) -> int:
        """Return the size of the head, without the part of the body that may have arrived together with its end."""
        headers = [
            *self._headers.items(),
            *((name, "".join(texts)) for name, texts in (self._repeated_headers or {}).items()),
        ]
        return sum(map(len, self._url)) + sum(len(name) + len(text) for name, text in headers)

    def on_body(self, body: bytes) -> None:
        """Collect a piece of the body, up to the size limit."""
        self.expects_continue = False
        self._head_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes <= self._max_body:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Queue the complete request."""
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
