"""TLS connections of a Python program to the API server of the run.

`ssl.SSLSocket` reads and writes its socket in C and bypasses the methods of `socket.socket`. Its bytes would not be
counted, pieces would not be read whole, and timeouts would be real time. Therefore the TLS session of such a socket
uses two memory buffers, and their bytes are sent and received by the patched methods of plain sockets (`files`).
asyncio needs no patch: it uses memory buffers already (`asyncio.sslproto`).
"""

from __future__ import annotations

import socket
import ssl
import weakref
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

from .files import Connections

#: Methods of `ssl.SSLSocket` that read or write in C; the other methods call these.
_TRANSFER_METHODS = ("do_handshake", "read", "write", "send", "unwrap")
#: RFC 8446, 5.1: a record begins with its type, its version and, in the last two bytes, the length of the rest.
_HEADER = 5


class _TlsBuffers:
    """The encrypted bytes of one connection: those received, and those to send."""

    def __init__(self) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        #: The part of the next record's header that was read, and the number of bytes left of the current record.
        self._header = b""
        self._left = 0
        #: Held while sending: bytes must be sent in the order in which threads encrypted them.
        self._sending = allocate_lock()

    def receive(self, sock: socket.socket) -> None:
        """Read at most the rest of one record; raise ssl.SSLWantReadError if a non-blocking socket has no data.

        Records are read one by one, as OpenSSL does: a program that polls would not see data that is read ahead.
        """
        try:
            data = socket.socket.recv(sock, self._left or _HEADER - len(self._header))
        except BlockingIOError:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "The operation did not complete (read)") from None
        if not data:
            self.incoming.write_eof()
            return
        self.incoming.write(data)
        if self._left:
            self._left -= len(data)
        else:
            self._header += data
            if len(self._header) == _HEADER:
                self._left, self._header = int.from_bytes(self._header[3:], "big"), b""

    def send(self, sock: socket.socket, traffic: Connections) -> None:
        """Send all bytes, even on a non-blocking socket: the server of the run always reads."""
        with self._sending:
            data = self.outgoing.read()
            while data:
                try:
                    data = data[socket.socket.send(sock, data) :]
                except BlockingIOError:
                    traffic.await_writable(sock)


def virtual_tls(traffic: Connections) -> dict[tuple[object, str], object]:
    """Return the replacements for methods of `ssl.SSLSocket`, by class and name."""
    #: By socket; None for connections to other servers.
    sessions: weakref.WeakKeyDictionary[ssl.SSLSocket, _TlsBuffers | None] = weakref.WeakKeyDictionary()

    def session_of(sock: Any) -> _TlsBuffers | None:
        if sock not in sessions and sock._sslobj is not None:
            sessions[sock] = _start_session(sock) if traffic.count_run_connection(sock) else None
        return sessions.get(sock)

    def wrap_transfer(name: str) -> Callable[..., Any]:
        real = getattr(ssl.SSLSocket, name)

        def method(sock: ssl.SSLSocket, *arguments: Any, **options: Any) -> Any:
            session = session_of(sock)
            if session is None:
                return real(sock, *arguments, **options)
            while True:
                try:
                    return real(sock, *arguments, **options)
                except ssl.SSLWantReadError:
                    pass  # the peer may need the bytes that are sent below before it answers
                finally:
                    session.send(sock, traffic)
                session.receive(sock)

        return method

    return {(ssl.SSLSocket, name): wrap_transfer(name) for name in _TRANSFER_METHODS}


def _start_session(sock: Any) -> _TlsBuffers:
    """Replace the TLS session of a socket by one with memory buffers, before its first read or write."""
    session = _TlsBuffers()
    sock._sslobj = sock.context._wrap_bio(
        session.incoming, session.outgoing, sock.server_side, sock.server_hostname, owner=sock, session=sock._session
    )
    return session
