"""The listener of `serve`, in this process: how its connections are set up, and what is left of them."""

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
from clients.greetings import HALF_A_GREETING, greeting

Visit = Callable[[socket.socket], object]

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
TLS = new_server_credentials("127.0.0.1", Instant(0)).tls_context


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
    connection.sendall(HALF_A_GREETING)


def greet_slowly(connection: socket.socket) -> None:
    """Greet with a pause after each of the first bytes, in the middle of the first record and before its end."""
    words = greeting()
    for piece in (words[:1], words[1:4], words[4:5], words[5:60], words[60:-1], words[-1:]):
        time.sleep(0.02)
        connection.sendall(piece)
    assert connection.recv(1) == b"\x16"


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
    return [each for each in gc.get_objects() if isinstance(each, EventLoopConnection | RequestParser | ssl.SSLObject)]


async def kept_of(visit: Visit) -> list[object]:
    """Return what is left of some visitors after they are gone and before anything is collected."""
    listener = listen_dual(Echo(), "127.0.0.1", 0, TLS)
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


@pytest.mark.parametrize("visit", [ask, ask_secretly, begin_to_greet, greet_slowly, greet_wrongly])
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
    listener = listen_dual(handler, "127.0.0.1", 0, TLS)
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


async def handshakes_under_way(visit: Visit, visitors: int) -> int:
    """Return how many handshakes are under way while some visitors have said all that they will say."""
    listener = listen_dual(Echo(), "127.0.0.1", 0, TLS)
    with contextlib.ExitStack() as visits:
        for _ in range(visitors):
            visit(visits.enter_context(socket.create_connection(("127.0.0.1", listener.port), timeout=20)))
        with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
            await asyncio.to_thread(ask, connection)
        count = sum(isinstance(each, ssl.SSLObject) for each in gc.get_objects())
    await listener.close()
    return count


def test_who_stops_in_the_middle_of_a_greeting_costs_no_handshake() -> None:
    assert asyncio.run(handshakes_under_way(begin_to_greet, 50)) == 0


async def rounds_until_served_beside(leavers: int) -> int:
    """Return how many rounds of the event loop a client waits that spoke just before many silent ones left."""
    listener = listen_dual(Echo(), "127.0.0.1", 0, TLS)
    silent = [socket.create_connection(("127.0.0.1", listener.port), timeout=20) for _ in range(leavers)]
    with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as connection:
        while listener.activity <= leavers:
            await asyncio.sleep(0)
        connection.sendall(REQUEST)
        for each in silent:
            each.close()
        connection.setblocking(False)
        rounds = 0
        while True:
            with contextlib.suppress(BlockingIOError):
                assert connection.recv(12) == b"HTTP/1.1 200"
                break
            await asyncio.sleep(0)
            rounds += 1
    await listener.close()
    return rounds


def test_nobody_waits_until_those_who_left_are_greeted() -> None:
    assert asyncio.run(rounds_until_served_beside(400)) < 40
