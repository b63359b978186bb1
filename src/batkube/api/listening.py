"""One port for HTTP and HTTPS alike.

kubectl wants TLS before it shows its token, and a script on the same machine is happier without; which of the two a
client speaks is seen from its first byte, before anything is read. Beyond the loopback only TLS is accepted.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl

from batkube.api.connections import Connection, Handler
from batkube.api.http import LoopConnection

#: The first byte of a TLS connection: a handshake record (RFC 8446, section 5.1).
_TLS_HANDSHAKE = b"\x16"
_BACKLOG = 512
#: What Go's net/http answers to a request that should have come over TLS.
_NEEDS_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class DualListener:
    """Accepts connections of both kinds until it is closed."""

    def __init__(self, handler: Handler, listening: socket.socket, tls: ssl.SSLContext, *, allows_plain: bool) -> None:
        self._handler = handler
        self._socket = listening
        self._tls = tls
        self._allows_plain = allows_plain
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        #: Connections of which nothing has been heard yet, by file descriptor.
        self._silent: dict[int, socket.socket] = {}
        #: Handshakes under way; kept so that they are not collected in the middle.
        self._greetings: set[asyncio.Task[None]] = set()
        self._loop.add_reader(listening.fileno(), self._accept)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._socket.getsockname()[1])

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            for _ in range(_BACKLOG):
                connection, _address = self._socket.accept()
                connection.setblocking(False)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._silent[connection.fileno()] = connection
                self._loop.add_reader(connection.fileno(), self._greet, connection)

    def _greet(self, connection: socket.socket) -> None:
        """Look at the first byte, without taking it."""
        self._loop.remove_reader(connection.fileno())
        del self._silent[connection.fileno()]
        try:
            first = connection.recv(1, socket.MSG_PEEK)
        except OSError:
            first = b""
        if not first or (first != _TLS_HANDSHAKE and not self._allows_plain):
            _refuse(connection, told=bool(first))
            return
        task = self._loop.create_task(self._hand_over(connection, self._tls if first == _TLS_HANDSHAKE else None))
        self._greetings.add(task)
        task.add_done_callback(self._greetings.discard)

    async def _hand_over(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            await self._loop.connect_accepted_socket(
                lambda: LoopConnection(self._handler, self._connections), connection, ssl=tls
            )

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for connection in list(self._silent.values()):
            self._loop.remove_reader(connection.fileno())
            connection.close()
        for open_connection in sorted(self._connections, key=id):
            open_connection.drop()
        await asyncio.sleep(0)


def _refuse(connection: socket.socket, *, told: bool) -> None:
    with connection, contextlib.suppress(OSError):
        if told:
            # What was sent is taken first: a connection closed with bytes unread is reset, and nobody reads the answer.
            connection.recv(65536)
            connection.sendall(_NEEDS_TLS)


def listen_both(handler: Handler, host: str, port: int, tls: ssl.SSLContext) -> DualListener:
    """Serve `handler` on `host`:`port` (0 for any free one) within the running event loop. Raises OSError."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.create_server(address, family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    return DualListener(handler, listening, tls, allows_plain=is_loopback(host))
