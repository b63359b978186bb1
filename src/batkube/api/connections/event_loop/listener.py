"""One port for HTTP and HTTPS alike, for as many clients as there is room for.

kubectl wants TLS before it shows its token, and a script on the same machine is happier without; which of the two a
client speaks is seen from its first byte, before anything is read. Beyond the loopback only TLS is accepted.

Anybody can connect and say nothing, so room is made when it runs out: first those go that have never said anything,
then those that are not greeted yet, then those between two requests, the longest quiet first.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import itertools
import logging
import resource
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable, Iterator

from batkube.api.connections.event_loop.server_connections import EventLoopConnection, ServerConnections
from batkube.api.connections.event_loop.timeouts import FIRST_BYTES_S
from batkube.api.connections.protocol.connection import Handler

log = logging.getLogger(__name__)

#: The first byte of a TLS connection: a handshake record (RFC 8446, section 5.1).
_TLS_HANDSHAKE_RECORD = 0x16
#: What comes before each record of TLS, the last two bytes of which tell how long it is; and the longest (section 5.2).
_RECORD_HEADER_BYTES = 5
_MAX_RECORD_BYTES = (1 << 14) + 256
#: As many as the system lets wait, as Go's net.Listen has it: what those beyond it say is lost, and said again only
#: after a fifth of a second, two fifths, … half a minute.
_BACKLOG = 4096
#: What Go's net/http answers to a request that should have come over TLS.
_TLS_REQUIRED_RESPONSE = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

#: As many as that at most, and that many file descriptors fewer than there may be.
_MAX_CONNECTIONS = 8192
_RESERVED_FILES = 64
#: How many connections go at once to make room, and which part of all at most; and how long none is accepted when that
#: has not helped.
_MAX_SHED = 64
_SHED_DIVISOR = 8
_ACCEPT_PAUSE_S = 0.2
#: How many are accepted, and greeted, before the event loop looks at the other sockets again: some milliseconds each.
_MAX_ACCEPTS_PER_ROUND = 128
_MAX_HANDSHAKES_PER_ROUND = 4
#: How long a client may take to say good-bye (TLS).
_TLS_SHUTDOWN_S = 5.0
#: What is read at a time. Asyncio sets it aside for every connection from its first byte on, and would take 256 KiB.
sslproto.SSLProtocol.max_size = 16 * 1024
#: What the system keeps of answers that are not read, beside what we do; by itself it would take megabytes.
_SEND_BUFFER_BYTES = 256 * 1024
#: Clients that have vanished are noticed (Kubernetes: apiserver/pkg/server/secure_serving.go, defaultKeepAlivePeriod).
_KEEP_ALIVE_S = 180


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def max_connections() -> int:
    """Return how many connections there may be, having raised the bound on open files as far as we are allowed to."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return max(1, min(_MAX_CONNECTIONS, files - _RESERVED_FILES))


class DualListener:
    """Accepts connections of both kinds until it is closed."""

    def __init__(self, handler: Handler, listening: socket.socket, tls: ssl.SSLContext, *, allows_plain: bool) -> None:
        self._handler = handler
        self._socket = listening
        self._tls = tls
        self._allows_plain = allows_plain
        self._loop = asyncio.get_running_loop()
        self._max_connections = max_connections()
        self._connections = ServerConnections(self._loop, has_newcomers=self._has_unserved_connections)
        #: Connections of which nothing has been heard yet, oldest first, and what ends each that stays silent.
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        #: Those that have spoken and are not greeted yet, oldest first. The newest is greeted first: when they are more
        #: than can be greeted, those who have waited long are about to give up.
        self._pending: list[socket.socket] = []
        #: Handshakes under way, oldest first; kept also so that they are not collected in the middle.
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._resume_timer: asyncio.TimerHandle | None = None
        self._accepted = 0
        self._start_accepting()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._socket.getsockname()[1])

    @property
    def activity(self) -> int:
        """How many connections have come, how many have gone, and how many requests were answered, together."""
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
            # There are no file descriptors left, or no memory (accept(2)).
            log.warning("a connection cannot be accepted: %s", error.strerror)
            self._shed_connections()
            self._pause_accepting()

    def _pause_accepting(self) -> None:
        """Accept nobody for a moment: those who wait are not lost, and trying again at once would help nobody."""
        self._loop.remove_reader(self._socket.fileno())
        self._resume_timer = self._loop.call_later(_ACCEPT_PAUSE_S, self._start_accepting)

    # Room

    def _has_unserved_connections(self) -> bool:
        return bool(self._silent or self._pending or self._handshakes)

    def _connection_count(self) -> int:
        return len(self._silent) + len(self._pending) + len(self._handshakes) + len(self._connections.connections)

    def _shed_connections(self) -> None:
        """End some of the connections that are missed least; they are gone when the event loop comes round."""
        count = max(1, min(_MAX_SHED, self._max_connections // _SHED_DIVISOR))
        dispensable = list(itertools.islice(self._shed_candidates(), count))
        log.warning(
            "there are %d connections; %d quiet ones are ended to make room", self._connection_count(), len(dispensable)
        )
        for end in dispensable:
            end()
        if not dispensable:
            self._pause_accepting()

    def _shed_candidates(self) -> Iterator[Callable[[], object]]:
        """Yield how to end each connection that nothing is lost with, the one that is missed least first."""
        for connection in self._silent:
            yield functools.partial(self._close_silent, connection)
        for connection in self._pending:
            yield functools.partial(self._close_pending, connection)
        for greeting in self._handshakes:
            yield greeting.cancel
        for waiting in self._connections.idle_connections():
            yield waiting.abort

    # Greeting

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
        word = _peek(connection, _RECORD_HEADER_BYTES)
        if not word:
            self._close_silent(connection)
            return
        if _is_record_incomplete(word, connection):
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
        """Look at the first byte, without taking it."""
        first = _peek(connection, 1)
        is_tls = first.startswith(bytes([_TLS_HANDSHAKE_RECORD]))
        if not first or not (is_tls or self._allows_plain):
            _reject(connection, with_answer=bool(first))
            return
        task = self._loop.create_task(self._serve_connection(connection, self._tls if is_tls else None))
        self._handshakes[task] = None
        task.add_done_callback(self._handshakes.pop)

    async def _serve_connection(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        bounds = (
            {} if tls is None else {"ssl_handshake_timeout": FIRST_BYTES_S, "ssl_shutdown_timeout": _TLS_SHUTDOWN_S}
        )
        try:
            await self._loop.connect_accepted_socket(
                lambda: EventLoopConnection(self._handler, self._connections), connection, ssl=tls, **bounds
            )
        except (OSError, asyncio.CancelledError) as error:
            # Where it happened leads back to the connection, which would stay until all garbage is collected.
            error.__traceback__ = error.__context__ = None

    async def close(self) -> None:
        """Stop listening and drop every connection."""
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
    """Return up to `count` bytes without taking them; none if the other side has gone."""
    try:
        return connection.recv(count, socket.MSG_PEEK)
    except OSError:
        return b""


def _is_record_incomplete(word: bytes, connection: socket.socket) -> bool:
    """Return whether more of the greeting that begins with `word` is to come, and wake us only when it is there.

    A thousand clients that stop in the middle of it would be a thousand handshakes under way, each of which takes
    memory, and time to end; so one begins when its first record is complete.
    """
    length = _first_record_length(word)
    if len(word) == _RECORD_HEADER_BYTES < length:
        word = _peek(connection, length)
    if len(word) >= length or length == connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT):
        # It is whole, or we were woken although it is not: nothing more will come.
        length = 1
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, length)
    return length > 1


def _first_record_length(word: bytes) -> int:
    """Return how many bytes to wait for, of a connection that begins with `word`: 1 for what is no TLS."""
    if word[0] != _TLS_HANDSHAKE_RECORD:
        return 1
    if len(word) < _RECORD_HEADER_BYTES:
        return _RECORD_HEADER_BYTES
    return min(_MAX_RECORD_BYTES, _RECORD_HEADER_BYTES + int.from_bytes(word[3:5], "big"))


def _reject(connection: socket.socket, *, with_answer: bool) -> None:
    with connection, contextlib.suppress(OSError):
        if with_answer:
            # What was sent is taken first: a connection closed with bytes unread is reset, and nobody reads the answer.
            connection.recv(65536)
            connection.sendall(_TLS_REQUIRED_RESPONSE)


def listen_dual(handler: Handler, host: str, port: int, tls: ssl.SSLContext) -> DualListener:
    """Serve `handler` on `host`:`port` (0 for any free one) within the running event loop. Raises OSError."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.create_server(address, family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    # Every connection that is accepted has the options of the socket that it came to.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Asyncio does it for sockets that it has accepted itself. Without it an answer waits until the client has confirmed
    # what was sent before, the last of TLS's greetings, which it takes 40 ms to do if it has nothing to say.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_S)
    return DualListener(handler, listening, tls, allows_plain=is_loopback(host))
