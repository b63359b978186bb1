"""HTTP under the control of the coordinator, which decides when requests are handled and responses are sent.

In a run in virtual time, the order of events must not depend on which socket became ready first. So:

- Requests are read and buffered as they arrive. They are handled when the program is idle and all its data has arrived,
  in the order in which the *program* opened its connections. The kernel may accept connections in a different order, so
  the program records its order on a page of shared memory.
- Responses are sent in pieces, one piece on one connection at a time, each when the program is idle. A piece is
  announced on that page before it is sent, and the program polls its connections only when the whole piece has arrived.
  It does not matter how the kernel splits and delays the piece.
- A connection that the program does not read gets no more data than fits into its receive window. Further data would
  stay in our kernel buffer and arrive at an arbitrary real time in the middle of the program's work.

All bytes are counted, so that the coordinator knows whether data is in flight. Connections of other processes are not
counted, since they are rejected (`program_listener`).
"""

from __future__ import annotations

import fcntl
import heapq
import re
import select
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Protocol

from batkube.api.connections.polled.program_listener import ProgramListener
from batkube.api.connections.polled.transmission import Transmission, WholePieces
from batkube.api.connections.protocol.connection import MAX_BODY_BYTES, Connection, Handler
from batkube.api.connections.protocol.tls_session import TlsSession, open_tls_session
from batkube.kernel.stopwatch import Stopwatch

_READ_BYTES = 1 << 18
#: The size of the largest piece. A program that learns of thousands of pods at once would open a connection for each
#: before it gets any response. The size is the same on all machines, since results depend on it.
MAX_PIECE_BYTES = 176 * 1024
#: No piece is sent on a connection with more unread bytes than this. Both together fit into the receive window of the
#: program, which requests a buffer of 208 KiB: Linux doubles it (socket(7)), offers half of it (tcp(7),
#: tcp_adv_win_scale), and starts with whole segments, three on the loopback (tcp_select_initial_window in
#: net/ipv4/tcp_output.c), which are 191 KiB. A piece therefore arrives whole before the program reads any of it.
_MAX_UNREAD_BYTES = 12 * 1024
#: An upper bound of the delay of an acknowledgement by the kernel (0.2 s).
_MAX_ACK_DELAY_S = 0.5
#: linux/sockios.h: returns the number of queued bytes that the kernel has not sent.
_SIOCOUTQNSD = 0x894B
#: The request line of a write to a single pod: a binding, a status, an eviction.
_POD_WRITE = re.compile(rb"^(?:POST|PUT|PATCH|DELETE) \S+/pods/\S+ HTTP/1\.1\r", re.MULTILINE)


class ProgramPage(Protocol):
    """The memory that the program shares with the server (`timing.page`)."""

    @property
    def bytes_read(self) -> int:
        """How many bytes the program has read from its connections to the server."""

    def announce(self, port: int, total: int) -> None:
        """Announce that `total` bytes in all will have been sent on the connection from `port`."""

    def connection_number(self, port: int) -> int:
        """Return the number, from 1, of the program's connection from `port` in the program's order; 0 if unknown."""


class _PolledConnection:
    """One connection with its pending output; the `Transport` of its `Connection`."""

    def __init__(
        self,
        accepted: int,
        sock: socket.socket,
        handler: Handler,
        open_connections: set[Connection],
        is_due: Callable[[_PolledConnection], None],
        max_body: int,
    ) -> None:
        """`accepted` is the connection's number in the order of acceptance."""
        #: The sort key among all connections: by the program's order, once that is known.
        self.order = (0, accepted)
        self.sock = sock
        self.port = _remote_port(sock)
        self._mark_due = is_due
        #: Whether nothing was read yet; the first bytes tell whether it speaks TLS.
        self.is_new = True
        self.tls: TlsSession | None = None
        #: Received bytes, and decrypted bytes that are not handled yet.
        self.received = bytearray()
        self.decrypted = bytearray()
        #: Whether the program has closed its sending side.
        self.is_half_closed = False
        #: Pending output, the number of bytes sent, and whether to close the connection after that.
        self.pending = bytearray()
        self.sent = 0
        self.closing = False
        self.http = Connection(handler, open_connections, max_body)
        self.http.attach(self)

    def write(self, data: bytes) -> None:
        """Buffer `data` until the coordinator sends it."""
        self.send_raw(data if self.tls is None else self.tls.encrypt(data))

    def send_raw(self, data: bytes) -> None:
        """Buffer bytes that are sent without encryption."""
        if not self.pending:
            self._mark_due(self)
        self.pending += data

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self.closing = True
        self._mark_due(self)

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Do nothing: pending output is sent completely before virtual time advances."""


class PolledServer:
    """A server on the loopback interface for one program."""

    def __init__(
        self,
        handler: Handler,
        listener: ProgramListener,
        max_body: int = MAX_BODY_BYTES,
        transmission: Transmission | None = None,
    ) -> None:
        self._handler = handler
        self.listener = listener
        self._max_body = max_body
        self._transmission = transmission or WholePieces()
        #: The TLS context; without it, TLS is not supported.
        self.tls: ssl.SSLContext | None = None
        #: The page shared with the program, once there is one.
        self.page: ProgramPage | None = None
        self._poll = select.epoll()
        self._poll.register(listener.sock, select.EPOLLIN)
        #: By file descriptor.
        self._connections: dict[int, _PolledConnection] = {}
        self._accepted = 0
        self._open_http_connections: set[Connection] = set()
        #: Connections with unhandled input, by file descriptor.
        self._unanswered: dict[int, _PolledConnection] = {}
        #: Connections with pending output, or that are to be closed: a heap in the order of the connections.
        self._due: list[tuple[tuple[int, int], _PolledConnection]] = []
        #: How many pieces did not fit into the receive window.
        self.overflows = 0
        #: The connection of the last piece, and when it was sent.
        self._last_sent_to: _PolledConnection | None = None
        self._sent_at = Stopwatch()
        #: Totals of the program: connections closed, bytes received and bytes sent.
        self.dropped_connections = 0
        self.received = 0
        self.sent = 0

    def read_ready(self, wait_s: float = 0.0) -> bool:
        """Read available data, waiting for at most `wait_s`; return whether the program has sent or connected."""
        ready = [number for number, _ in self._poll.poll(wait_s)]
        before = self.listener.accepted
        if self.listener.sock.fileno() in ready:
            self._accept()
            ready = [number for number, _ in self._poll.poll(0)]
        sending = [self._connections[number] for number in ready if number in self._connections]
        for peer in sending:
            self._read(peer)
        return bool(sending) or self.listener.accepted > before

    def _accept(self) -> None:
        for sock in self.listener.accept_program_connections():
            self._accepted += 1
            self._connections[sock.fileno()] = _PolledConnection(
                self._accepted, sock, self._handler, self._open_http_connections, self._mark_due, self._max_body
            )
            self._poll.register(sock, select.EPOLLIN)

    def _read(self, peer: _PolledConnection) -> None:
        self._unanswered[peer.sock.fileno()] = peer
        try:
            while data := peer.sock.recv(_READ_BYTES):
                self.received += len(data)
                peer.received += data
        except BlockingIOError:
            return
        except OSError:
            pass
        peer.is_half_closed = True
        self._poll.unregister(peer.sock)

    @property
    def has_bytes_in_flight(self) -> bool:
        """Whether data is in flight between the program and us, according to the kernel."""
        return self.listener.has_bytes_in_flight(peer.sock for peer in self._connections.values())

    @property
    def unread_bytes(self) -> int:
        """How many bytes have arrived at the program but are unread, according to the kernel."""
        return self.listener.unread_bytes(peer.sock for peer in self._connections.values())

    @property
    def has_pending_requests(self) -> bool:
        """Whether any input is unhandled."""
        return bool(self._unanswered)

    @property
    def pending_pod_writes(self) -> int:
        """How many of the unhandled requests write a single pod."""
        return sum(len(_POD_WRITE.findall(peer.decrypted)) for peer in self._unanswered_in_order())

    def answer_requests(self) -> None:
        """Handle all input, in the order in which the program opened its connections."""
        waiting = self._unanswered_in_order()
        self._unanswered = {}
        for peer in waiting:
            if peer.sock.fileno() < 0:
                continue  # closed meanwhile: the program had reset it, and sending a response failed
            if peer.decrypted:
                data, peer.decrypted = bytes(peer.decrypted), bytearray()
                peer.http.data_received(data)
            if peer.is_half_closed:
                self._drop(peer)

    def _unanswered_in_order(self) -> list[_PolledConnection]:
        """Return the connections with unhandled input in the program's order.

        The program is idle, so it has recorded all its connections.
        """
        for peer in self._unanswered.values():
            if peer.is_new and self.page is not None:
                peer.order = (self.page.connection_number(peer.port), peer.order[1])
        waiting = sorted(self._unanswered.values(), key=lambda peer: peer.order)
        for peer in waiting:
            self._decrypt(peer)
        return waiting

    def _decrypt(self, peer: _PolledConnection) -> None:
        """Move received bytes to `decrypted`, decrypting them if the connection uses TLS."""
        data, peer.received = bytes(peer.received), bytearray()
        if not data:
            return
        if peer.is_new:
            peer.is_new, peer.tls = False, open_tls_session(data, self.tls)
        if peer.tls is not None:
            try:
                data, reply = peer.tls.decrypt(data)
            except OSError:
                peer.closing = True
                self._mark_due(peer)
                return
            if reply:
                peer.send_raw(reply)
        peer.decrypted += data

    def _mark_due(self, peer: _PolledConnection) -> None:
        heapq.heappush(self._due, (peer.order, peer))

    def send_next(self) -> bool:
        """Send a piece on the first connection that can receive one, or close one; return whether that was possible."""
        blocked: list[tuple[tuple[int, int], _PolledConnection]] = []
        try:
            while self._due:
                number, peer = self._due[0]
                if peer.sock.fileno() >= 0 and peer.pending:
                    if self._can_receive(peer) and self._send_piece(peer):
                        return True
                    blocked.append((number, peer))
                    heapq.heappop(self._due)
                    continue
                heapq.heappop(self._due)
                if peer.sock.fileno() >= 0 and peer.closing:
                    self._drop(peer)
                    return True
            return False
        finally:
            for entry in blocked:
                heapq.heappush(self._due, entry)

    def _can_receive(self, peer: _PolledConnection) -> bool:
        """Return whether the program has read everything, or another piece fits into the receive window."""
        if self.page is None or self.page.bytes_read >= self.sent:
            return True
        return self.listener.unread_bytes([peer.sock]) <= _MAX_UNREAD_BYTES and not _unsent_bytes(peer.sock)

    def _send_piece(self, peer: _PolledConnection) -> bool:
        """Send a piece; return whether any progress was made."""
        piece = bytes(peer.pending[:MAX_PIECE_BYTES])
        self._announce(peer, peer.sent + len(piece))
        try:
            count = self._transmission.send(peer.sock, piece)
        except OSError:
            self._drop(peer)
            return True
        if count < len(piece):
            self._announce(peer, peer.sent + count)
            self.overflows += 1
        self._last_sent_to, self._sent_at = peer, Stopwatch()
        self.sent += count
        peer.sent += count
        del peer.pending[:count]
        return count > 0

    def retract_unsent(self) -> None:
        """Reduce the announcement of the last piece to what the kernel has sent, if it did not fit into the window.

        The rest arrives when the program has read enough, at an arbitrary real time. A piece may also wait for the
        acknowledgement of earlier ones, so this does nothing until the longest possible delay of an acknowledgement has
        passed.
        """
        peer = self._last_sent_to
        if peer is None or peer.sock.fileno() < 0 or self._sent_at.real_s < _MAX_ACK_DELAY_S:
            return
        if unsent := _unsent_bytes(peer.sock):
            self._announce(peer, peer.sent - unsent)
            self.overflows += 1
            self._last_sent_to = None

    def _announce(self, peer: _PolledConnection, total: int) -> None:
        # After the program has closed this connection, a later one may reuse its port.
        if self.page is not None and self.page.connection_number(peer.port) in (0, peer.order[0]):
            self.page.announce(peer.port, total)

    def _drop(self, peer: _PolledConnection) -> None:
        if not peer.is_half_closed:
            self._poll.unregister(peer.sock)
        del self._connections[peer.sock.fileno()]
        self.listener.forget(peer.sock)
        # The end of the stream counts as one byte (RFC 9293, 3.4: a FIN has a sequence number). It follows the unsent
        # bytes, which may never arrive if the program does not read.
        unsent = _unsent_bytes(peer.sock)
        self._announce(peer, peer.sent - unsent if unsent else peer.sent + 1)
        self.overflows += bool(unsent)
        peer.sock.close()
        peer.http.connection_lost(None)
        self.dropped_connections += 1

    def close(self) -> None:
        """Close every connection and stop listening."""
        self.page = None
        for peer in list(self._connections.values()):
            self._drop(peer)
        self._poll.close()
        self.listener.close()


def _unsent_bytes(sock: socket.socket) -> int:
    """Return how many bytes of a connection the kernel has buffered but not sent."""
    return int.from_bytes(fcntl.ioctl(sock, _SIOCOUTQNSD, bytes(4)), sys.byteorder)


def _remote_port(sock: socket.socket) -> int:
    """Return the program's port of a connection, 0 if it was reset."""
    try:
        return int(sock.getpeername()[1])
    except OSError:
        return 0
