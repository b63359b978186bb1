"""HTTP for a program whose time is paced: whatever it asks is answered at once, but for bindings.

A binding is a decision, and those are taken one by one, when the cycle comes to them (see `cycles`). Until then its
sender waits for the answer. The 2020 prototype answered at once and started the pod in its turn; the pod starts at the
same instant, and here no answer is given that is not true yet.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
from collections import deque

from batkube.api.connections.polled.program_listener import ProgramListener
from batkube.api.connections.protocol.connection import Connection, Handler
from batkube.api.connections.protocol.tls_session import TlsSession, open_tls_session

_READ_SIZE = 1 << 18
_BINDING = re.compile(rb"POST \S+/pods/[^/\s]+/binding HTTP/1\.1\r")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class _PacedConnection:
    """One connection (the Wire of its `Connection`)."""

    def __init__(self, sock: socket.socket, server: PacedServer, handler: Handler) -> None:
        self.sock = sock
        self._server = server
        #: Whether it speaks TLS is told by its first bytes.
        self.is_new = True
        self.tls: TlsSession | None = None
        #: A binding that has come and is not taken yet.
        self.binding = b""
        #: What has to go out, and whether the connection ends then.
        self.pending = bytearray()
        self.closing = False
        self.http = Connection(handler, server.open_connections)
        self.http.attach(self)

    def write(self, data: bytes) -> None:
        """Send `data` when the server comes to it."""
        self.send_raw(data if self.tls is None else self.tls.encrypt(data))

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are, likewise."""
        self.pending += data
        self._server.request_send(self)

    def close(self) -> None:
        """End the connection once everything is sent."""
        self.closing = True
        self._server.request_send(self)

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Do nothing: a reader that does not keep up is waited for, not held back."""


class PacedServer:
    """A listening server on the loopback for one program."""

    def __init__(self, handler: Handler, listener: ProgramListener) -> None:
        self._handler = handler
        self.listener = listener
        #: What is shown to clients that speak TLS; without it they are not understood.
        self.tls: ssl.SSLContext | None = None
        self._poll = select.epoll()
        self._poll.register(listener.sock, select.EPOLLIN)
        self._connections: dict[int, _PacedConnection] = {}
        #: The connections with something to send, by file descriptor.
        self._pending_sends: dict[int, _PacedConnection] = {}
        #: The connections on which a binding waits, in the order in which they came.
        self._bindings: deque[_PacedConnection] = deque()
        self.open_connections: set[Connection] = set()
        #: Bytes received from the program and sent to it, ever.
        self.received = 0
        self.sent = 0

    @property
    def waiting_bindings(self) -> int:
        """How many bindings wait to be taken."""
        return len(self._bindings)

    def serve(self, wait_s: float) -> None:
        """Send what is due, then answer what comes, waiting at most `wait_s` for anything."""
        self._send()
        for number, _ in self._poll.poll(wait_s):
            if number == self.listener.sock.fileno():
                self._accept()
            elif number in self._connections:
                self._read(self._connections[number])
        self._send()

    def accept_binding(self) -> bool:
        """Answer the binding that has waited longest; return whether there was one."""
        if not self._bindings:
            return False
        peer = self._bindings.popleft()
        request, peer.binding = peer.binding, b""
        peer.http.data_received(request)
        self._send()
        return True

    def request_send(self, peer: _PacedConnection) -> None:
        """Take note that a connection has something to send."""
        self._pending_sends[peer.sock.fileno()] = peer

    def _accept(self) -> None:
        for sock in self.listener.accept_program_connections():
            self._connections[sock.fileno()] = _PacedConnection(sock, self, self._handler)
            self._poll.register(sock, select.EPOLLIN)

    def _read(self, peer: _PacedConnection) -> None:
        # What the requests lead to is handled outside of `try`: an OSError of that is a bug, and not the connection's.
        while True:
            try:
                data = self._receive(peer)
            except BlockingIOError:
                return
            except OSError:
                break
            if data is None:
                break
            if data:
                self._handle_data(peer, data)
        self._drop(peer)

    def _receive(self, peer: _PacedConnection) -> bytes | None:
        """Return what has arrived, decrypted; None if the program has closed the connection. Raises OSError."""
        data = peer.sock.recv(_READ_SIZE)
        if not data:
            return None
        self.received += len(data)
        if peer.is_new:
            peer.is_new, peer.tls = False, open_tls_session(data, self.tls)
        if peer.tls is not None:
            data, reply = peer.tls.decrypt(data)
            if reply:
                peer.send_raw(reply)
        return data

    def _handle_data(self, peer: _PacedConnection, data: bytes) -> None:
        """Answer what came, or keep it if it is a binding, which waits in line as soon as all of it is there."""
        if not peer.binding and not _BINDING.match(data):
            peer.http.data_received(data)
            return
        peer.binding += data
        if _is_complete(peer.binding) and peer not in self._bindings:
            self._bindings.append(peer)

    def _send(self) -> None:
        for peer in list(self._pending_sends.values()):
            try:
                while peer.pending:
                    count = peer.sock.send(peer.pending)
                    self.sent += count
                    del peer.pending[:count]
            except BlockingIOError:
                continue
            except OSError:
                self._drop(peer)
                continue
            del self._pending_sends[peer.sock.fileno()]
            if peer.closing:
                self._drop(peer)

    def _drop(self, peer: _PacedConnection) -> None:
        number = peer.sock.fileno()
        self._poll.unregister(peer.sock)
        self._pending_sends.pop(number, None)
        if peer in self._bindings:
            self._bindings.remove(peer)
        del self._connections[number]
        self.listener.forget(peer.sock)
        peer.sock.close()
        peer.http.connection_lost(None)

    def close(self) -> None:
        """Drop every connection and stop listening."""
        for peer in list(self._connections.values()):
            self._drop(peer)
        self._poll.close()
        self.listener.close()


def _is_complete(request: bytes) -> bool:
    """Return whether all of a request has come: some send the body apart from the head."""
    head, separator, body = request.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(separator) and len(body) >= (int(length[1]) if length else 0)
