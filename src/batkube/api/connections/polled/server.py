"""HTTP under the control of the coordinator: nothing is answered or sent except when it says so.

In a run on virtual time the order of things must not depend on which socket happened to be ready first. So:

- What the program writes is read as it comes, and kept. It is answered when the program is idle and everything it has
  written has arrived, in the order in which the *program* began its connections. The kernel may accept them in another
  order, so the program records its own on the page that it shares with us.
- What is due goes out in pieces, one piece on one connection at a time, each when the program is idle. A piece is
  announced on that page before it is sent, and the program looks at its connections only when the whole piece has
  arrived. The kernel may therefore cut and delay it as it likes.
- A connection whose reader does not read gets no more than fits into its receive window. What does not fit would stay
  in our kernel buffer, and arrive at some real moment in the middle of the program's work.

Everything is counted, so that the coordinator can tell whether anything is in flight. Other processes that connect to
the port are not counted, since they are not let in (see `program_listener`).
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
#: The largest piece. Told of thousands of pods at once, a program would open a connection for each of them before it
#: gets any answer. The size is the same on every machine, since results depend on it.
MAX_PIECE_BYTES = 176 * 1024
#: No piece is sent to a connection on which more than this waits to be read. Both fit into the receive window of a
#: program, which asks for a buffer of 208 KiB: Linux doubles that (socket(7)), offers half of it (tcp(7),
#: tcp_adv_win_scale), and begins with whole segments, three on the loopback (tcp_select_initial_window in
#: net/ipv4/tcp_output.c), which are 191 KiB. So a piece arrives whole before the program reads any of it.
_MAX_UNREAD_BYTES = 12 * 1024
#: For longer than this the kernel delays no acknowledgement (tcp(7): at most 0.2 s).
_MAX_ACK_DELAY_S = 0.5
#: linux/sockios.h: how many bytes are queued on a connection that the kernel has not sent.
_SIOCOUTQNSD = 0x894B
#: The first line of a write that is about one pod: a binding, a status, an eviction.
_POD_WRITE = re.compile(rb"^(?:POST|PUT|PATCH|DELETE) \S+/pods/\S+ HTTP/1\.1\r", re.MULTILINE)


class ProgramPage(Protocol):
    """The memory that the program shares with the server (`timing.page`)."""

    @property
    def bytes_read(self) -> int:
        """How many bytes the program has read from its connections to the server."""

    def announce(self, port: int, total: int) -> None:
        """Announce that on the connection from `port` altogether `total` bytes will have been sent."""

    def connection_number(self, port: int) -> int:
        """Return which of the program's connections began at `port`, counted from 1; 0 if unknown."""


class _PolledConnection:
    """One connection and what has to go out on it (the Wire of its `Connection`)."""

    def __init__(
        self,
        accepted: int,
        sock: socket.socket,
        handler: Handler,
        open_connections: set[Connection],
        is_due: Callable[[_PolledConnection], None],
        max_body: int,
    ) -> None:
        """`accepted` is its place in the order in which connections were accepted."""
        #: Its place among all connections: in the program's own order, once that is known.
        self.order = (0, accepted)
        self.sock = sock
        self.port = _remote_port(sock)
        self._mark_due = is_due
        #: Whether nothing has been read from it yet; its first bytes tell whether it speaks TLS.
        self.is_new = True
        self.tls: TlsSession | None = None
        #: Bytes received, then those of them that are decrypted and not answered yet.
        self.received = bytearray()
        self.decrypted = bytearray()
        #: Whether the other side will send no more.
        self.is_half_closed = False
        #: What has to go out, how much has gone out, and whether the connection ends then.
        self.pending = bytearray()
        self.sent = 0
        self.closing = False
        self.http = Connection(handler, open_connections, max_body)
        self.http.attach(self)

    def write(self, data: bytes) -> None:
        """Keep `data` until the coordinator lets it out."""
        self.send_raw(data if self.tls is None else self.tls.encrypt(data))

    def send_raw(self, data: bytes) -> None:
        """Keep bytes that go out as they are."""
        if not self.pending:
            self._mark_due(self)
        self.pending += data

    def close(self) -> None:
        """End the connection once everything is sent."""
        self.closing = True
        self._mark_due(self)

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Do nothing: what is pending is sent whole before time goes on."""


class PolledServer:
    """A listening server on the loopback for one program."""

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
        #: What is shown to clients that speak TLS; without it they are not understood.
        self.tls: ssl.SSLContext | None = None
        #: The page of the program, once it has one.
        self.page: ProgramPage | None = None
        self._poll = select.epoll()
        self._poll.register(listener.sock, select.EPOLLIN)
        #: By file descriptor.
        self._connections: dict[int, _PolledConnection] = {}
        self._accepted = 0
        self._open_http_connections: set[Connection] = set()
        #: Those from which something has come, by file descriptor; those on which something has to go out or that
        #: have to end, by number.
        self._unanswered: dict[int, _PolledConnection] = {}
        self._due: list[tuple[tuple[int, int], _PolledConnection]] = []
        #: How many pieces did not fit into the receive window, and the connection that was sent to most recently.
        self.overflows = 0
        self._last_sent_to: _PolledConnection | None = None
        self._sent_at = Stopwatch()
        #: Of the program: connections dropped, bytes received and bytes sent, ever.
        self.dropped_connections = 0
        self.received = 0
        self.sent = 0

    def read_ready(self, wait_s: float = 0.0) -> bool:
        """Read what has come, waiting at most `wait_s` for anything; return whether anything of the program's had."""
        ready = [number for number, _ in self._poll.poll(wait_s)]
        before = self.listener.accepted
        if self.listener.sock.fileno() in ready:
            self._accept()
            ready = [number for number, _ in self._poll.poll(0)]
        speaking = [self._connections[number] for number in ready if number in self._connections]
        for peer in speaking:
            self._read(peer)
        return bool(speaking) or self.listener.accepted > before

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
        """Whether anything is in flight between the program and us, as the kernel sees it."""
        return self.listener.has_bytes_in_flight(peer.sock for peer in self._connections.values())

    @property
    def unread_bytes(self) -> int:
        """How many bytes have arrived at the program that it has not read, as the kernel sees it."""
        return self.listener.unread_bytes(peer.sock for peer in self._connections.values())

    @property
    def has_pending_requests(self) -> bool:
        """Whether anything was read that is not answered."""
        return bool(self._unanswered)

    @property
    def pending_pod_writes(self) -> int:
        """How many of the requests that wait for an answer would change a single pod."""
        return sum(len(_POD_WRITE.findall(peer.decrypted)) for peer in self._unanswered_in_order())

    def answer_requests(self) -> None:
        """Answer what was read, in the order in which the program began its connections."""
        asking = self._unanswered_in_order()
        self._unanswered = {}
        for peer in asking:
            if peer.sock.fileno() < 0:
                continue  # the program cut it, and what was to go out on it failed before we came to this
            if peer.decrypted:
                data, peer.decrypted = bytes(peer.decrypted), bytearray()
                peer.http.data_received(data)
            if peer.is_half_closed:
                self._drop(peer)

    def _unanswered_in_order(self) -> list[_PolledConnection]:
        """Return those from which something has come. The program is idle, so it has recorded all its connections."""
        for peer in self._unanswered.values():
            if peer.is_new and self.page is not None:
                peer.order = (self.page.connection_number(peer.port), peer.order[1])
        asking = sorted(self._unanswered.values(), key=lambda peer: peer.order)
        for peer in asking:
            self._decrypt(peer)
        return asking

    def _decrypt(self, peer: _PolledConnection) -> None:
        """Move what was received to the inbox, without the encryption if there is one."""
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
        """Send a piece of what is due on the first connection that takes it; return whether one did."""
        held: list[tuple[tuple[int, int], _PolledConnection]] = []
        try:
            while self._due:
                number, peer = self._due[0]
                if peer.sock.fileno() >= 0 and peer.pending:
                    if self._can_receive(peer) and self._send_piece(peer):
                        return True
                    held.append((number, peer))
                    heapq.heappop(self._due)
                    continue
                heapq.heappop(self._due)
                if peer.sock.fileno() >= 0 and peer.closing:
                    self._drop(peer)
                    return True
            return False
        finally:
            for entry in held:
                heapq.heappush(self._due, entry)

    def _can_receive(self, peer: _PolledConnection) -> bool:
        """Return whether the program reads the connection, or a piece still fits into its receive window."""
        if self.page is None or self.page.bytes_read >= self.sent:
            return True
        return self.listener.unread_bytes([peer.sock]) <= _MAX_UNREAD_BYTES and not _unsent_bytes(peer.sock)

    def _send_piece(self, peer: _PolledConnection) -> bool:
        """Send a piece; return whether that changed anything."""
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
        """Announce no more than the kernel has sent: the latest piece did not fit into the receive window after all.

        What is left arrives whenever the program has read enough, at a real moment. A piece may also wait for the
        acknowledgement of earlier ones, which the kernel delays by less than this.
        """
        peer = self._last_sent_to
        if peer is None or peer.sock.fileno() < 0 or self._sent_at.real_s < _MAX_ACK_DELAY_S:
            return
        if unsent := _unsent_bytes(peer.sock):
            self._announce(peer, peer.sent - unsent)
            self.overflows += 1
            self._last_sent_to = None

    def _announce(self, peer: _PolledConnection, total: int) -> None:
        # A port may have been taken again by a later connection, when the program has closed this one.
        if self.page is not None and self.page.connection_number(peer.port) in (0, peer.order[0]):
            self.page.announce(peer.port, total)

    def _drop(self, peer: _PolledConnection) -> None:
        if not peer.is_half_closed:
            self._poll.unregister(peer.sock)
        del self._connections[peer.sock.fileno()]
        self.listener.forget(peer.sock)
        # The end of a stream is counted as one byte more (RFC 9293, 3.4: a FIN has a sequence number). It comes after
        # what is still unsent, which a program that does not read may never let through.
        unsent = _unsent_bytes(peer.sock)
        self._announce(peer, peer.sent - unsent if unsent else peer.sent + 1)
        self.overflows += bool(unsent)
        peer.sock.close()
        peer.http.connection_lost(None)
        self.dropped_connections += 1

    def close(self) -> None:
        """Drop every connection and stop listening."""
        self.page = None
        for peer in list(self._connections.values()):
            self._drop(peer)
        self._poll.close()
        self.listener.close()


def _unsent_bytes(sock: socket.socket) -> int:
    """Return how many bytes of a connection the kernel has taken and not sent."""
    return int.from_bytes(fcntl.ioctl(sock, _SIOCOUTQNSD, bytes(4)), sys.byteorder)


def _remote_port(sock: socket.socket) -> int:
    """Return the port at which the program's end of a connection is; 0 if it was reset."""
    try:
        return int(sock.getpeername()[1])
    except OSError:
        return 0
