"""HTTP responses with a deadline for the complete head. A socket's own timeout applies to each received piece."""

from __future__ import annotations

import io
import socket
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any

from batkube.kernel.stopwatch import Stopwatch

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _TimedReader(io.RawIOBase):
    """Reads from a socket; raises TimeoutError if all reads together take longer than its timeout."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._raw = connection.makefile("rb", buffering=0)
        self._timeout_s = connection.gettimeout()
        self._age = Stopwatch()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        """Receive data into a buffer."""
        if self._timeout_s is not None:
            left_s = self._timeout_s - self._age.real_s
            if left_s <= 0:
                raise TimeoutError("the head of the response was not complete in time")
            self._socket.settimeout(left_s)
        return self._raw.readinto(buffer)

    def end_deadline(self) -> None:
        """Apply the timeout to each single read from now on."""
        self._socket.settimeout(self._timeout_s)
        self._timeout_s = None

    def close(self) -> None:
        """Release the socket."""
        self._raw.close()
        super().close()


class TimedResponse(HTTPResponse):
    """A response whose status line and headers must be complete within the timeout of the socket."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - of http.client
        super().__init__(sock, *arguments, **options)
        self.fp.close()
        self._reader = _TimedReader(sock)
        self.fp = io.BufferedReader(self._reader)

    def begin(self) -> None:
        """Read the head."""
        super().begin()
        if not self._reader.closed:  # closed if the response has no body
            self._reader.end_deadline()


def time_responses(manager: Any) -> None:  # noqa: ANN401 - of urllib3
    """Make the connections of a pool manager use `TimedResponse`."""

    def timed(pool: type[Any]) -> type[Any]:
        connection = type(pool.ConnectionCls.__name__, (pool.ConnectionCls,), {"response_class": TimedResponse})
        return type(pool.__name__, (pool,), {"ConnectionCls": connection})

    manager.pool_classes_by_scheme = {scheme: timed(pool) for scheme, pool in manager.pool_classes_by_scheme.items()}
