"""The listener of `serve`, in this process: how connections are accepted and freed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import time
from collections.abc import Callable, Iterator

import pytest

from batkube.api.access.serving_certificates import new_server_credentials
from batkube.api.connections.event_loop.listener import listen_dual
from batkube.api.connections.event_loop.server_connections import EventLoopConnection
from batkube.api.connections.protocol.request_parser import RequestParser
from batkube.api.requests.messages import Request, Response
from batkube.kernel.instants import Instant
from clients.client_hellos import PARTIAL_CLIENT_HELLO, client_hello

ClientAction = Callable[[socket.socket], object]

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
TLS = new_server_credentials("127.0.0.1", Instant(0)).tls_context


class Echo:
    """Returns the same response to all requests."""

    def handle(self, request: Request) -> Response:
        return Response(200, request.path.encode(), "text/plain")

    def too_large(self) -> Response:
        return Response(413, b"", "text/plain")


def send_request(connection: socket.socket) -> None:
    connection.sendall(REQUEST)
    assert connection.recv(12) == b"HTTP/1.1 200"


def send_request_over_tls(connection: socket.socket) -> None:
    with ssl._create_unverified_context().wrap_socket(connection) as tls_connection:
        send_request(tls_connection)


def send_half_a_client_hello(connection: socket.socket) -> None:
    connection.sendall(PARTIAL_CLIENT_HELLO)


def send_slow_client_hello(connection: socket.socket) -> None:
    """Send a client hello with pauses, also within the record header and before the last byte."""
    hello = client_hello()
    for piece in (hello[:1], hello[1:4], hello[4:5], hello[5:60], hello[60:-1], hello[-1:]):
        time.sleep(0.02)
        connection.sendall(piece)
    assert connection.recv(1) == b"\x16"


def send_malformed_client_hello(connection: socket.socket) -> None:
    connection.sendall(b"\x16\x03\x01\x00\x05hello")
    connection.recv(100)


@contextlib.contextmanager
def garbage_collection_disabled() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def live_connection_objects() -> list[object]:
    return [each for each in gc.get_objects() if isinstance(each, EventLoopConnection | RequestParser | ssl.SSLObject)]


async def live_objects_after(client: ClientAction) -> list[object]:
    """Return the objects that remain of some connections after they are closed, before any garbage collection."""
    listener = listen_dual(Echo(), "127.0.0.1", 0, TLS)
    try:
        with garbage_collection_disabled():
            for _ in range(5):
                with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
                    await asyncio.to_thread(client, connection)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    while live_connection_objects():
                        await asyncio.sleep(0.05)
            return live_connection_objects()
    finally:
        await listener.close()


@pytest.mark.parametrize(
    "client",
    [
        send_request,
        send_request_over_tls,
        send_half_a_client_hello,
        send_slow_client_hello,
        send_malformed_client_hello,
    ],
)
def test_a_closed_connection_is_freed_without_the_garbage_collector(client: ClientAction) -> None:
    assert asyncio.run(live_objects_after(client)) == []


class SocketInspector(Echo):
    """Inspects the sockets of this process that are connected to our port."""

    port = 0

    def __init__(self) -> None:
        self.without_delay: list[bool] = []

    def handle(self, request: Request) -> Response:
        for each in gc.get_objects():
            if isinstance(each, socket.socket) and each.family is socket.AF_INET:
                with contextlib.suppress(OSError):  # it is closed, or not connected
                    if each.getpeername() and each.getsockname()[1] == self.port:
                        self.without_delay.append(bool(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        return super().handle(request)


async def no_delay_options(client: ClientAction) -> list[bool]:
    handler = SocketInspector()
    listener = listen_dual(handler, "127.0.0.1", 0, TLS)
    handler.port = listener.port
    try:
        with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
            await asyncio.to_thread(client, connection)
    finally:
        await listener.close()
    return handler.without_delay


@pytest.mark.parametrize("client", [send_request, send_request_over_tls])
def test_responses_do_not_wait_for_delayed_acknowledgements(client: ClientAction) -> None:
    assert asyncio.run(no_delay_options(client)) == [True]


async def handshakes_in_progress(client: ClientAction, clients: int) -> int:
    """Return how many handshakes are in progress after some clients have sent all their data."""
    listener = listen_dual(Echo(), "127.0.0.1", 0, TLS)
    with contextlib.ExitStack() as connections:
        for _ in range(clients):
            client(connections.enter_context(socket.create_connection(("127.0.0.1", listener.port), timeout=20)))
        with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
            await asyncio.to_thread(send_request, connection)
        count = sum(isinstance(each, ssl.SSLObject) for each in gc.get_objects())
    await listener.close()
    return count


def test_an_incomplete_client_hello_starts_no_handshake() -> None:
    assert asyncio.run(handshakes_in_progress(send_half_a_client_hello, 50)) == 0


async def iterations_until_served(idle_clients: int) -> int:
    """Return how many event loop iterations a client waits that sent data just before many others disconnected."""
    listener = listen_dual(Echo(), "127.0.0.1", 0, TLS)
    idle = [socket.create_connection(("127.0.0.1", listener.port), timeout=20) for _ in range(idle_clients)]
    with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
        while listener.activity <= idle_clients:
            await asyncio.sleep(0)
        connection.sendall(REQUEST)
        for each in idle:
            each.close()
        connection.setblocking(False)
        iterations = 0
        while True:
            with contextlib.suppress(BlockingIOError):
                assert connection.recv(12) == b"HTTP/1.1 200"
                break
            await asyncio.sleep(0)
            iterations += 1
    await listener.close()
    return iterations


def test_clients_do_not_wait_for_handshakes_of_disconnected_ones() -> None:
    assert asyncio.run(iterations_until_served(400)) < 40


class Slow(Echo):
    """Takes so long for each request that the next one has to wait."""

    def handle(self, request: Request) -> Response:
        time.sleep(0.05)
        return super().handle(request)


def test_a_client_that_closes_its_tls_connection_early_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio warns if a protocol asks to keep a TLS connection open whose other end has closed it."""

    def send_requests_and_close(connection: socket.socket) -> None:
        with ssl._create_unverified_context().wrap_socket(connection) as tls_connection:
            tls_connection.sendall(REQUEST * 20)
            # Say goodbye (close_notify), and ignore the responses that come instead of an answer.
            with contextlib.suppress(OSError):
                tls_connection.unwrap()

    async def connect() -> None:
        listener = listen_dual(Slow(), "127.0.0.1", 0, TLS)
        with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
            await asyncio.to_thread(send_requests_and_close, connection)
        await asyncio.sleep(0.2)
        await listener.close()

    asyncio.run(connect())

    assert caplog.messages == []
