"""The listener of `serve`, in this process: how its connections are set up, and what is left of them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
from collections.abc import Callable, Iterator

import pytest

from batkube.api.access.certificates import make_credentials
from batkube.api.connections.http import LoopConnection
from batkube.api.connections.incoming import Incoming
from batkube.api.connections.listening import listen_both
from batkube.api.requests.messages import Request, Response
from batkube.kernel.instants import Instant

Visit = Callable[[socket.socket], object]

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
TLS = make_credentials("127.0.0.1", Instant(0)).context


class Echo:
    """Answers everything alike."""

    def handle(self, request: Request) -> Response:
        return Response(200, request.path.encode(), "text/plain")

    def too_large(self) -> Response:
        return Response(413, b"", "text/plain")


def ask(connection: socket.socket) -> None:
    connection.sendall(REQUEST)
    assert connection.recv(12) == b"HTTP/1.1 200"


def ask_secretly(connection: socket.socket) -> None:
    with ssl._create_unverified_context().wrap_socket(connection) as secret:
        ask(secret)


def begin_to_greet(connection: socket.socket) -> None:
    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00")


def greet_wrongly(connection: socket.socket) -> None:
    connection.sendall(b"\x16\x03\x01\x00\x05hello")
    connection.recv(100)


@contextlib.contextmanager
def nothing_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def kept() -> list[object]:
    return [each for each in gc.get_objects() if isinstance(each, LoopConnection | Incoming | ssl.SSLObject)]


async def kept_of(visit: Visit) -> list[object]:
    """Return what is left of some visitors after they are gone and before anything is collected."""
    listener = listen_both(Echo(), "127.0.0.1", 0, TLS)
    try:
        with nothing_collected():
            for _ in range(5):
                with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
                    await asyncio.to_thread(visit, connection)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    while kept():
                        await asyncio.sleep(0.05)
            return kept()
    finally:
        await listener.close()


@pytest.mark.parametrize("visit", [ask, ask_secretly, begin_to_greet, greet_wrongly])
def test_nothing_of_a_connection_waits_for_the_garbage_collector(visit: Visit) -> None:
    assert asyncio.run(kept_of(visit)) == []


class Inquisitive(Echo):
    """Looks at the sockets of this process that are connected to a port of ours."""

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


async def delays_of(visit: Visit) -> list[bool]:
    handler = Inquisitive()
    listener = listen_both(handler, "127.0.0.1", 0, TLS)
    handler.port = listener.port
    try:
        with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
            await asyncio.to_thread(visit, connection)
    finally:
        await listener.close()
    return handler.without_delay


@pytest.mark.parametrize("visit", [ask, ask_secretly])
def test_no_answer_waits_until_the_client_has_confirmed_what_was_sent_before(visit: Visit) -> None:
    assert asyncio.run(delays_of(visit)) == [True]
