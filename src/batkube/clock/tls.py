"""TLS on the program's connections to the run.

Python reads and writes the socket of an `ssl.SSLSocket` in C, without the methods of `socket.socket`. A connection to
the run would then be neither counted nor read in whole pieces, and its timeouts would be real time. So such a socket
gets a session between two buffers in memory, whose bytes move through the methods of plain sockets (`files`). asyncio
does the same by itself (`asyncio.sslproto`).
"""

from __future__ import annotations

import socket
import ssl
import weakref
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

from .files import Connections

#: Methods of `ssl.SSLSocket` that read or write in C; its other methods call these.
_MOVING = ("do_handshake", "read", "write", "send", "unwrap")
#: RFC 8446, 5.1: a record begins with its type, its version and, in the last two bytes, the length of the rest.
_HEADER = 5


class _TlsBuffers:
    """What has arrived on one connection and what has to be sent, both encrypted."""

    def __init__(self) -> None:
        self.arrived, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        #: The header of the next record, as far as it was read, and how much of the record follows.
        self._header = b""
        self._left = 0
        #: Held while something is sent: what one thread has encrypted first has to be sent first.
        self._sending = allocate_lock()

    def receive(self, sock: socket.socket) -> None:
        """Read at most the rest of one record. Raises ssl.SSLWantReadError if a non-blocking socket has none.

        Records are read one by one, as OpenSSL does: what is read ahead would be invisible to a program that polls.
        """
        try:
            data = socket.socket.recv(sock, self._left or _HEADER - len(self._header))
        except BlockingIOError:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "The operation did not complete (read)") from None
        if not data:
            self.arrived.write_eof()
            return
        self.arrived.write(data)
        if self._left:
            self._left -= len(data)
        else:
            self._header += data
            if len(self._header) == _HEADER:
                self._left, self._header = int.from_bytes(self._header[3:], "big"), b""

    def send(self, sock: socket.socket, traffic: Connections) -> None:
        """Send everything, also on a non-blocking socket: the run's server reads all the time."""
        with self._sending:
            data = self.leaving.read()
            while data:
                try:
                    data = data[socket.socket.send(sock, data) :]
                except BlockingIOError:
                    traffic.await_writable(sock)


def virtual_tls(traffic: Connections) -> dict[tuple[object, str], object]:
    """Return the replacements for methods of `ssl.SSLSocket`, by class and name."""
    #: By socket; None for those to others than the run.
    sessions: weakref.WeakKeyDictionary[ssl.SSLSocket, _TlsBuffers | None] = weakref.WeakKeyDictionary()

    def session_of(sock: Any) -> _TlsBuffers | None:
        if sock not in sessions and sock._sslobj is not None:
            sessions[sock] = _begin(sock) if traffic.adopt(sock) else None
        return sessions.get(sock)

    def moving(name: str) -> Callable[..., Any]:
        real = getattr(ssl.SSLSocket, name)

        def method(sock: ssl.SSLSocket, *arguments: Any, **options: Any) -> Any:
            session = session_of(sock)
            if session is None:
                return real(sock, *arguments, **options)
            while True:
                try:
                    return real(sock, *arguments, **options)
                except ssl.SSLWantReadError:
                    pass  # the peer may have to receive first what is sent now
                finally:
                    session.send(sock, traffic)
                session.receive(sock)

        return method

    return {(ssl.SSLSocket, name): moving(name) for name in _MOVING}


def _begin(sock: Any) -> _TlsBuffers:
    """Give a socket, before its first read or write, a session between two buffers."""
    session = _TlsBuffers()
    sock._sslobj = sock.context._wrap_bio(
        session.arrived, session.leaving, sock.server_side, sock.server_hostname, owner=sock, session=sock._session
    )
    return session
