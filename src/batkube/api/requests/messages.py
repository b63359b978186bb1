"""Requests, responses and streams, independent of sockets: the interface between the server and the I/O modules."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

import msgspec

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Request(msgspec.Struct):
    """One HTTP request; header names are lower-case."""

    method: str
    #: The path as sent, percent-decoded.
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes = b""
    #: Whether the server may raise NeedsWorkerThread instead of blocking other connections.
    may_defer: bool = False
    #: The result of parsing the body in a worker thread, if that was needed: see `NeedsWorkerThread`.
    parsed_body: Any = None
    #: Responses of webhooks that this request has called so far: see `requests.webhooks.calls`.
    webhook_responses: dict[Hashable, Any] = {}

    def query_value(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def query_flag(self, name: str) -> bool:
        """Return whether a boolean query parameter is set to anything but false and 0.

        Kubernetes: apimachinery/pkg/runtime/conversion.go, Convert_Slice_string_To_bool.
        """
        return name in self.query and self.query_value(name).lower() not in ("false", "0")


class NeedsWorkerThread(Exception):
    """The request needs a long computation: run `work` in another thread, then handle the request again.

    `work` accesses nothing but the request. Raised only if the request `may_defer`.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__("the request needs a worker thread")
        self.work = work


class Response(msgspec.Struct):
    """A complete response."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Sink(Protocol):
    """The connection that a stream writes to; implemented by the I/O modules."""

    @property
    def writable(self) -> bool:
        """Whether the client keeps up; a stream pauses while this is False."""

    def write(self, data: bytes) -> None:
        """Send a chunk."""

    def close(self) -> None:
        """End the response properly."""


class Stream(Protocol):
    """A streaming response: a watch, or logs that are followed."""

    content_type: str
    headers: tuple[tuple[str, str], ...]
    #: Called when the stream has stopped, if set.
    on_stopped: Callable[[], None] | None

    @property
    def buffered_bytes(self) -> int:
        """The approximate memory that is held for this client alone until it reads more."""

    def start(self, sink: Sink) -> None:
        """Start writing to `sink`."""

    @property
    def has_pending_data(self) -> bool:
        """Whether `resume` would write something now."""

    def resume(self) -> None:
        """Write the next chunk."""

    def stop(self) -> None:
        """Stop the stream; the client has disconnected."""


class Timers(Protocol):
    """Timers on the server's clock: virtual time in a run, real time in `serve`."""

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in `seconds`; the returned function cancels the timer."""
