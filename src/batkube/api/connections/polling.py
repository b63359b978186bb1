"""HTTP under the hand of the coordinator: nothing is read or written but when it says so.

In a run on virtual time the order of things must not depend on which socket happened to be ready first. So requests are
read when their sender is idle, answered in the order of connections, and what is due goes out on one connection at a
time. Everything is counted, so that the coordinator can tell whether anything is still on its way. Strangers at the
port are not, since they are not let in (see `program_listener`).
"""

from __future__ import annotations

import heapq
import itertools
import re
import select
import socket
import ssl
from collections.abc import Callable

from batkube.api.connections.connection import MAX_BODY, Connection, Handler
from batkube.api.connections.program_listener import ProgramListener
from batkube.api.connections.tls import TlsSession, tls_session

_READ = 1 << 18
#: What goes out at most at a time. A program hears of thousands of new pods in some such pieces, acts upon each and is
#: answered, as over a network; else it would open a connection for every one of them before it hears any answer.
_PIECE = 1 << 16
#: The first line of a write that is about one pod: a binding, a status, an eviction.
_ABOUT_A_POD = re.compile(rb"^(?:POST|PUT|PATCH|DELETE) \S+/pods/\S+ HTTP/1\.1\r", re.MULTILINE)


class _Peer:
    """One connection and what has to go out on it (the Wire of its `Connection`)."""

    def __init__(
        self,
        number: int,
        sock: socket.socket,
        handler: Handler,
        open_connections: set[Connection],
        is_due: Callable[[_Peer], None],
        max_body: int,
    ) -> None:
        #: Its place in the order in which connections were made.
        self.number = number
        self.sock = sock
        self._is_due = is_due
        #: Whether it speaks TLS is told by its first bytes.
        self.is_new = True
        self.tls: TlsSession | None = None
        #: What has come and is not answered yet, and whether the other side will send no more.
        self.inbox = bytearray()
        self.ended = False
        #: What has to go out, and whether the connection ends then.
        self.pending = bytearray()
        self.closing = False
        self.http = Connection(handler, open_connections, max_body)
        self.http.serve_over(self)

    def write(self, data: bytes) -> None:
        """Keep `data` until the coordinator lets it out."""
        self.keep(data if self.tls is None else self.tls.seal(data))

    def keep(self, data: bytes) -> None:
        """Keep bytes that go out as they are."""
        if not self.pending:
            self._is_due(self)
        self.pending += data

    def close(self) -> None:
        """End the connection once everything is sent."""
        self.closing = True
        self._is_due(self)

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Do nothing: what is pending is sent whole before time goes on."""


class PolledServer:
    """A listening server on the loopback for one program."""

    def __init__(self, handler: Handler, listener: ProgramListener, max_body: int = MAX_BODY) -> None:
        self._handler = handler
        self.listener = listener
        self._max_body = max_body
        #: What is shown to clients that speak TLS; without it they are not understood.
        self.tls: ssl.SSLContext | None = None
        self._poll = select.epoll()
        self._poll.register(listener.sock, select.EPOLLIN)
        self._numbers = itertools.count()
        #: By file descriptor.
        self._peers: dict[int, _Peer] = {}
        self._open: set[Connection] = set()
        #: Those that have to be answered, and those on which something has to go out or that have to end, by number.
        self._asking: dict[int, _Peer] = {}
        self._due: list[tuple[int, _Peer]] = []
        #: Of the program: connections dropped, bytes received and bytes sent, ever.
        self.dropped = 0
        self.received = 0
        self.sent = 0

    def collect(self, wait_s: float = 0.0) -> bool:
        """Read what has come, waiting at most `wait_s` for anything; return whether anything of the program's had."""
        ready = [number for number, _ in self._poll.poll(wait_s)]
        before = self.listener.let_in
        if self.listener.sock.fileno() in ready:
            self.admit()
            ready = [number for number, _ in self._poll.poll(0)]
        speaking = [self._peers[number] for number in ready if number in self._peers]
        for peer in speaking:
            self._read(peer)
        return bool(speaking) or self.listener.let_in > before

    @property
    def is_awaiting(self) -> bool:
        """Whether anything is on its way between the program and us, as the kernel sees it."""
        return self.listener.is_awaiting(peer.sock for peer in self._peers.values())

    @property
    def unread(self) -> int:
        """How many bytes have arrived at the program that it has not read, as the kernel sees it."""
        return self.listener.unread(peer.sock for peer in self._peers.values())

    @property
    def decisions(self) -> int:
        """How many of the requests that wait for an answer would change a single pod."""
        return sum(len(_ABOUT_A_POD.findall(peer.inbox)) for peer in self._asking.values())

    def answer(self) -> None:
        """Answer what was read, in the order in which the connections were made."""
        asking, self._asking = self._asking, {}
        for number in sorted(asking):
            peer = asking[number]
            if peer.sock.fileno() < 0:
                continue  # the program cut it, and what was to go out on it failed before we came to this
            if peer.inbox:
                data, peer.inbox = bytes(peer.inbox), bytearray()
                peer.http.data_received(data)
            if peer.ended:
                self._drop(peer)

    def admit(self) -> None:
        """Accept the connections that wait, without reading: a client cannot go on while the queue of them is full."""
        for sock in self.listener.newcomers():
            self._peers[sock.fileno()] = _Peer(
                next(self._numbers), sock, self._handler, self._open, self._is_due, self._max_body
            )
            self._poll.register(sock, select.EPOLLIN)

    def _is_due(self, peer: _Peer) -> None:
        heapq.heappush(self._due, (peer.number, peer))

    def _read(self, peer: _Peer) -> None:
        self._asking[peer.number] = peer
        try:
            while data := peer.sock.recv(_READ):
                self.received += len(data)
                if peer.is_new:
                    peer.is_new, peer.tls = False, tls_session(data, self.tls)
                if peer.tls is not None:
                    data, reply = peer.tls.open(data)
                    if reply:
                        peer.keep(reply)
                peer.inbox += data
        except BlockingIOError:
            return
        except OSError:
            pass
        peer.ended = True
        self._poll.unregister(peer.sock)

    def _drop(self, peer: _Peer) -> None:
        if not peer.ended:
            self._poll.unregister(peer.sock)
        del self._peers[peer.sock.fileno()]
        self.listener.forget(peer.sock)
        peer.sock.close()
        peer.http.connection_lost(None)
        self.dropped += 1

    def send_one(self) -> bool:
        """Send a piece of what is due on the first connection that has anything; return whether one had."""
        while self._due:
            _, peer = self._due[0]
            if peer.sock.fileno() >= 0 and peer.pending:
                self._send(peer)
                return True
            heapq.heappop(self._due)
            if peer.sock.fileno() >= 0 and peer.closing:
                self._drop(peer)
                return True
        return False

    def _send(self, peer: _Peer) -> None:
        try:
            count = peer.sock.send(peer.pending[:_PIECE])
        except BlockingIOError:
            return
        except OSError:
            self._drop(peer)
            return
        self.sent += count
        del peer.pending[:count]

    def close(self) -> None:
        """Drop every connection and stop listening."""
        for peer in list(self._peers.values()):
            self._drop(peer)
        self._poll.close()
        self.listener.close()
