"""HTTP server for a program in paced time: it responds to every request at once, except for bindings.

A binding is a decision. Bindings are queued and handled one at a time, when the time driver requests it (`paced_time`);
until then the client waits for its response. The 2020 prototype responded at once and started the pod later. Here the
pod starts at the same instant as there, and no response is sent before it is true.
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
    """One connection; the `Transport` of its `Connection`."""

    def __init__(self, sock: socket.socket, server: PacedServer, handler: Handler) -> None:
        self.sock = sock
        self._server = server
        #: Whether no byte has been received yet: the first bytes show whether the client speaks TLS.
        self.is_new = True
        self.tls: TlsSession | None = None
        #: A binding request, received at least in part and not yet handled.
        self.binding = b""
        #: Bytes to send, and whether to close the connection after them.
        self.pending = bytearray()
        self.closing = False
        self.http = Connection(handler, server.open_connections)
        self.http.attach(self)

    def write(self, data: bytes) -> None:
        """Queue `data` for sending, encrypted if the client speaks TLS."""
        self.send_raw(data if self.tls is None else self.tls.encrypt(data))

    def send_raw(self, data: bytes) -> None:
        """Queue bytes for sending as they are."""
        self.pending += data
        self._server.request_send(self)

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self.closing = True
        self._server.request_send(self)

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Do nothing: the server waits for slow readers instead of pausing them."""


class PacedServer:
    """A server on the loopback interface for one program."""

    def __init__(self, handler: Handler, listener: ProgramListener) -> None:
        self._handler = handler
        self.listener = listener
        #: TLS settings; None if TLS clients are not supported.
        self.tls: ssl.SSLContext | None = None
        self._poll = select.epoll()
        self._poll.register(listener.sock, select.EPOLLIN)
        self._connections: dict[int, _PacedConnection] = {}
        #: Connections with bytes to send, by file descriptor.
        self._pending_sends: dict[int, _PacedConnection] = {}
        #: Connections with a complete binding request, in order of arrival.
        self._bindings: deque[_PacedConnection] = deque()
        self.open_connections: set[Connection] = set()
        #: Bytes received from the program and sent to it.
        self.received = 0
        self.sent = 0

    @property
    def waiting_bindings(self) -> int:
        """The number of queued bindings."""
        return len(self._bindings)

    def serve(self, wait_s: float) -> None:
        """Send queued bytes, then handle requests, waiting at most `wait_s` for any."""
        self._send()
        for number, _ in self._poll.poll(wait_s):
            if number == self.listener.sock.fileno():
                self._accept()
            elif number in self._connections:
                self._read(self._connections[number])
        self._send()

    def accept_binding(self) -> bool:
        """Handle the binding that was queued first; return whether there was one."""
        if not self._bindings:
            return False
        peer = self._bindings.popleft()
        request, peer.binding = peer.binding, b""
        peer.http.data_received(request)
        self._send()
        return True

    def request_send(self, peer: _PacedConnection) -> None:
        """Queue a connection for sending."""
        self._pending_sends[peer.sock.fileno()] = peer

    def _accept(self) -> None:
        for sock in self.listener.accept_program_connections():
            self._connections[sock.fileno()] = _PacedConnection(sock, self, self._handler)
            self._poll.register(sock, select.EPOLLIN)

    def _read(self, peer: _PacedConnection) -> None:
        # Requests are handled outside of `try`: an OSError raised there is a bug, not a fault of the connection.
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
        """Return the received data, decrypted; None if the program closed the connection. Raises OSError."""
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
        """Handle a request; queue it instead once it is complete, if it is a binding."""
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
        """Close every connection and stop listening."""
        for peer in list(self._connections.values()):
            self._drop(peer)
        self._poll.close()
        self.listener.close()


def _is_complete(request: bytes) -> bool:
    """Return whether all of a request has been received: some clients send the body after the head."""
    head, separator, body = request.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(separator) and len(body) >= (int(length[1]) if length else 0)
