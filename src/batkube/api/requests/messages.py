"""Requests and answers, free of sockets: what the server thinks in, and the I/O modules carry."""

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
    #: Whether others wait who must not be held up by something `NeedsWorkerThread`.
    may_defer: bool = False
    #: What was made of the body beforehand, if anything was: see `NeedsWorkerThread`.
    parsed_body: Any = None
    #: What others have answered on the way: see `requests.outside`.
    webhook_responses: dict[Hashable, Any] = {}

    def query_value(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def query_flag(self, name: str) -> bool:
        """Return whether a boolean query parameter is on: if it is there, and neither false nor 0.

        Kubernetes: apimachinery/pkg/runtime/conversion.go, Convert_Slice_string_To_bool.
        """
        return name in self.query and self.query_value(name).lower() not in ("false", "0")


class NeedsWorkerThread(Exception):
    """What a request in haste asks for takes long: let `work` be done apart, which touches nothing but the request.

    Then ask again.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__("takes long")
        self.work = work


class Response(msgspec.Struct):
    """A whole answer."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Sink(Protocol):
    """Where a stream writes to; the I/O module implements it for a connection."""

    @property
    def writable(self) -> bool:
        """Whether the reader keeps up; a stream holds back while not."""

    def write(self, data: bytes) -> None:
        """Send a piece."""

    def close(self) -> None:
        """End the stream in good order."""


class Stream(Protocol):
    """An answer without end: a watch."""

    content_type: str
    headers: tuple[tuple[str, str], ...]
    #: Called, if anybody wants to know, when it has stopped.
    on_stopped: Callable[[], None] | None

    @property
    def buffered_bytes(self) -> int:
        """About how much memory is kept for this reader alone until it has read on."""

    def start(self, sink: Sink) -> None:
        """Begin to write into `sink`."""

    @property
    def has_pending_data(self) -> bool:
        """Whether there is more to write at once, as far as the sink is writable."""

    def resume(self) -> None:
        """Write the next piece."""

    def stop(self) -> None:
        """The reader is gone."""


class Timers(Protocol):
    """Calls in the future on whatever clock the server runs: virtual in a run, real in `serve`."""

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once `seconds` from now; the returned function cancels it."""
