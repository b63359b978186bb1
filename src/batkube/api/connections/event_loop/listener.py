"""Listen for HTTP and HTTPS on one port, with a limit on connections.

kubectl sends its token over TLS only, while scripts on the same machine are simpler without TLS. The first byte of a
connection distinguishes the two. On interfaces other than loopback, only TLS is accepted.

When the limit on connections is reached, some are closed: first those that have sent nothing, then those whose TLS
handshake is pending, then idle keep-alive connections, each in the order of the longest idle time.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import ipaddress
import itertools
import logging
import os
import resource
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable, Iterator

from batkube.api.connections.event_loop.server_connections import EventLoopConnection, ServerConnections
from batkube.api.connections.event_loop.timeouts import FIRST_BYTES_S
from batkube.api.connections.event_loop.webhook_transport import WebhookThreads
from batkube.api.connections.protocol.connection import Handler

log = logging.getLogger(__name__)

#: The first byte of a TLS connection: a handshake record (RFC 8446, section 5.1).
_TLS_HANDSHAKE_RECORD = 0x16
#: The size of the TLS record header, whose last two bytes are the length, and of the largest record (section 5.2).
_RECORD_HEADER_BYTES = 5
_MAX_RECORD_BYTES = (1 << 14) + 256
#: The accept queue, usually as large as the system allows (as in Go's net.Listen). The kernel drops packets of
#: connections beyond it; their retransmission takes from 0.2 s to half a minute.
_BACKLOG = 4096
#: The response of Go's net/http to a plain HTTP request on a TLS port.
_TLS_REQUIRED_RESPONSE = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

#: The bounds of the limit on connections, and how many file descriptors are reserved for other purposes.
_MIN_CONNECTIONS, _MAX_CONNECTIONS = 16, 8192
_RESERVED_FILES = 64
#: How many connections are closed at once to make room, at most which fraction of all, and how long no connection is
#: accepted if that does not help.
_MAX_SHED = 64
_SHED_DIVISOR = 8
_ACCEPT_PAUSE_S = 0.2
#: How many connections are accepted, and handshakes started, per iteration of the event loop: some milliseconds each.
_MAX_ACCEPTS_PER_ROUND = 128
_MAX_HANDSHAKES_PER_ROUND = 4
#: The timeout of the TLS closing handshake.
_TLS_SHUTDOWN_S = 5.0
#: The read buffer that asyncio allocates per TLS connection; the default is 256 KiB.
sslproto.SSLProtocol.max_size = 16 * 1024
#: The kernel's send buffer per connection; the default grows to megabytes.
_SEND_BUFFER_BYTES = 256 * 1024
#: TCP keep-alive, to detect dead clients (Kubernetes: apiserver/pkg/server/secure_serving.go, defaultKeepAlivePeriod).
_KEEP_ALIVE_S = 180


def is_loopback(host: str) -> bool:
    """Return whether `host` is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def max_connections() -> int:
    """Raise the limit on open files as far as permitted, and return the resulting limit on connections.

    Raises OSError if it is too low: the server would close every connection.
    """
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    if files < _RESERVED_FILES + _MIN_CONNECTIONS:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return min(_MAX_CONNECTIONS, files - _RESERVED_FILES)


class DualListener:
    """Accepts HTTP and HTTPS connections until it is closed."""

    def __init__(
        self,
        handler: Handler,
        listening: socket.socket,
        tls: ssl.SSLContext,
        webhook_threads: WebhookThreads | None,
        *,
        allows_plain: bool,
        connections: int,
    ) -> None:
        """Accept at most so many `connections` at once."""
        self._handler = handler
        self._socket = listening
        self._tls = tls
        self._allows_plain = allows_plain
        self._loop = asyncio.get_running_loop()
        self._max_connections = connections
        self._connections = ServerConnections(
            self._loop, has_newcomers=self._has_unserved_connections, webhook_threads=webhook_threads
        )
        #: Connections that have sent nothing yet, oldest first, with their timeouts.
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        #: Connections that wait for their handshake, oldest first. The newest is served first: under overload, clients
        #: that have waited long are about to give up.
        self._pending: list[socket.socket] = []
        #: Handshakes in progress, oldest first. The references also keep the tasks from being garbage-collected.
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._resume_timer: asyncio.TimerHandle | None = None
        self._accepted = 0
        self._start_accepting()

    @property
    def port(self) -> int:
        """The port number."""
        return int(self._socket.getsockname()[1])

    @property
    def activity(self) -> int:
        """A number that grows with every connection opened or closed and every request handled."""
        return 2 * self._accepted - self._connection_count() + self._connections.queue.answered_requests

    # Accepting

    def _start_accepting(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            for _ in range(_MAX_ACCEPTS_PER_ROUND):
                if self._connection_count() >= self._max_connections:
                    self._shed_connections()
                    return
                connection, _ = self._socket.accept()
                self._accepted += 1
                self._await_first_bytes(connection)
        except (BlockingIOError, ConnectionError):
            pass
        except OSError as error:
            # Out of file descriptors or memory (accept(2)).
            log.warning("cannot accept a connection: %s", error.strerror)
            self._shed_connections()
            self._pause_accepting()

    def _pause_accepting(self) -> None:
        """Stop accepting for a moment; pending connections stay in the accept queue."""
        self._loop.remove_reader(self._socket.fileno())
        self._resume_timer = self._loop.call_later(_ACCEPT_PAUSE_S, self._start_accepting)

    # Limit on connections

    def _has_unserved_connections(self) -> bool:
        return bool(self._silent or self._pending or self._handshakes)

    def _connection_count(self) -> int:
        return len(self._silent) + len(self._pending) + len(self._handshakes) + len(self._connections.connections)

    def _shed_connections(self) -> None:
        """Close some idle connections; they are gone in the next iteration of the event loop."""
        count = max(1, min(_MAX_SHED, self._max_connections // _SHED_DIVISOR))
        candidates = list(itertools.islice(self._shed_candidates(), count))
        log.warning(
            "there are too many connections (%d); closing %d idle ones", self._connection_count(), len(candidates)
        )
        for close in candidates:
            close()
        if not candidates:
            self._pause_accepting()

    def _shed_candidates(self) -> Iterator[Callable[[], object]]:
        """Yield functions that close idle connections, the most dispensable first."""
        for connection in self._silent:
            yield functools.partial(self._close_silent, connection)
        for connection in self._pending:
            yield functools.partial(self._close_pending, connection)
        for handshake in self._handshakes:
            yield handshake.cancel
        for idle in self._connections.idle_connections():
            yield idle.abort

    # First bytes and handshakes

    def _await_first_bytes(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._silent[connection] = self._loop.call_later(FIRST_BYTES_S, self._close_silent, connection)
        self._loop.add_reader(connection.fileno(), self._on_first_bytes, connection)

    def _remove_silent(self, connection: socket.socket) -> None:
        self._loop.remove_reader(connection.fileno())
        self._silent.pop(connection).cancel()

    def _close_silent(self, connection: socket.socket) -> None:
        self._remove_silent(connection)
        connection.close()

    def _close_pending(self, connection: socket.socket) -> None:
        self._pending.remove(connection)
        connection.close()

    def _on_first_bytes(self, connection: socket.socket) -> None:
        prefix = _peek(connection, _RECORD_HEADER_BYTES)
        if not prefix:
            self._close_silent(connection)
            return
        if _is_record_incomplete(prefix, connection):
            return
        self._remove_silent(connection)
        if not self._pending:
            self._loop.call_soon(self._start_pending_handshakes)
        self._pending.append(connection)

    def _start_pending_handshakes(self) -> None:
        for _ in range(min(_MAX_HANDSHAKES_PER_ROUND, len(self._pending))):
            self._start_handshake(self._pending.pop())
        if self._pending:
            self._loop.call_soon(self._start_pending_handshakes)

    def _start_handshake(self, connection: socket.socket) -> None:
        """Decide by the first byte whether the connection speaks TLS, and start to serve it."""
        first = _peek(connection, 1)
        is_tls = first.startswith(bytes([_TLS_HANDSHAKE_RECORD]))
        if not first or not (is_tls or self._allows_plain):
            _reject(connection, with_response=bool(first))
            return
        task = self._loop.create_task(self._serve_connection(connection, self._tls if is_tls else None))
        self._handshakes[task] = None
        task.add_done_callback(self._handshakes.pop)

    async def _serve_connection(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        timeouts = (
            {} if tls is None else {"ssl_handshake_timeout": FIRST_BYTES_S, "ssl_shutdown_timeout": _TLS_SHUTDOWN_S}
        )
        try:
            await self._loop.connect_accepted_socket(
                lambda: EventLoopConnection(self._handler, self._connections), connection, ssl=tls, **timeouts
            )
        except (OSError, asyncio.CancelledError) as error:
            # The traceback refers to the connection, and would keep it alive until the next full garbage collection.
            error.__traceback__ = error.__context__ = None

    async def close(self) -> None:
        """Stop listening and close every connection."""
        self._loop.remove_reader(self._socket.fileno())
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._socket.close()
        for connection in list(self._silent):
            self._close_silent(connection)
        for connection in self._pending:
            connection.close()
        self._connections.close()
        await asyncio.sleep(0)


def _peek(connection: socket.socket, count: int) -> bytes:
    """Return up to `count` bytes without consuming them; none if the peer has disconnected."""
    try:
        return connection.recv(count, socket.MSG_PEEK)
    except OSError:
        return b""


def _is_record_incomplete(prefix: bytes, connection: socket.socket) -> bool:
    """Return whether the first TLS record, which begins with `prefix`, is incomplete.

    If so, set SO_RCVLOWAT so that the event loop wakes up when it is complete. A handshake starts only then, because a
    thousand clients that stop in the middle of it would occupy memory and time.
    """
    length = _first_record_length(prefix)
    if len(prefix) == _RECORD_HEADER_BYTES < length:
        prefix = _peek(connection, length)
    if len(prefix) >= length or length == connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT):
        # The record is complete, or we were woken up although it is not, so no more data will arrive.
        length = 1
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, length)
    return length > 1


def _first_record_length(prefix: bytes) -> int:
    """Return the number of bytes to wait for on a connection that begins with `prefix`: 1 if it is not TLS."""
    if prefix[0] != _TLS_HANDSHAKE_RECORD:
        return 1
    if len(prefix) < _RECORD_HEADER_BYTES:
        return _RECORD_HEADER_BYTES
    return min(_MAX_RECORD_BYTES, _RECORD_HEADER_BYTES + int.from_bytes(prefix[3:5], "big"))


def _reject(connection: socket.socket, *, with_response: bool) -> None:
    with connection, contextlib.suppress(OSError):
        if with_response:
            # Read first: closing a socket with unread data resets the connection, and the response would be lost.
            connection.recv(65536)
            connection.sendall(_TLS_REQUIRED_RESPONSE)


def listen_dual(
    handler: Handler, host: str, port: int, tls: ssl.SSLContext, webhook_threads: WebhookThreads | None = None
) -> DualListener:
    """Serve `handler` on `host`:`port` (0 for any free port) in the running event loop. Raises OSError."""
    connections = max_connections()
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.create_server(address, family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    # Accepted sockets inherit these options.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Asyncio sets it only on sockets that it accepts itself. Without it, the first response waits for the client's
    # delayed acknowledgement of the TLS handshake, which takes 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_S)
    return DualListener(
        handler, listening, tls, webhook_threads, allows_plain=is_loopback(host), connections=connections
    )
