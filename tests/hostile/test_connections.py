"""Clients without a token: limits on the memory, time and connections that they can use."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.client_hellos import PARTIAL_CLIENT_HELLO, client_hello
from hostile.attacked import Attacked, attacked, read_all, request, send_until_refused, wait_until

MIB = 1024 * 1024
#: More than the real server allows for any part of a request.
ENOUGH = 40 * MIB


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with attacked(tmp_path_factory.mktemp("serve"), "--bare") as running:
        yield running


@pytest.mark.parametrize(
    ("begin", "piece", "answer"),
    [
        (b"GET /", b"a" * 65536, b"HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\nX: ", b"a" * 65536, b"HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\n", b"x: a\r\n" * 10000, b"HTTP/1.1 431 "),
        (b"POST /api/v1/pods HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a" * 65536, b"HTTP/1.1 431 "),
        (b"POST /api/v1/pods HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a" * 65536, b"HTTP/1.1 431 "),
        (b"POST /api/v1/pods HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"a" * 65536, b"HTTP/1.1 413 "),
    ],
    ids=["line", "header", "headers", "trailer", "chunk extension", "body"],
)
def test_every_part_of_a_request_has_a_size_limit(server: Attacked, begin: bytes, piece: bytes, answer: bytes) -> None:
    before = server.memory_mb()
    with server.connect() as connection:
        connection.sendall(begin)
        sent = send_until_refused(connection, piece, ENOUGH)
        answered = read_all(connection)

    assert sent < ENOUGH
    # The answer is lost if the connection is reset because of unread data.
    assert answered.startswith(answer) or not answered
    assert server.memory_mb() - before < 40


def test_a_request_head_that_is_too_long_is_rejected_as_by_kube_apiserver(server: Attacked) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * (MIB + 65536) + b"\r\n\r\n")
        answered = read_all(connection)

    assert answered.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert answered.endswith(b"\r\n\r\n431 Request Header Fields Too Large")


def test_long_request_heads_are_parsed_in_linear_time(server: Attacked) -> None:
    repeated = b"GET /version HTTP/1.1\r\n" + b"x: a\r\n" * 160_000 + b"\r\n"
    parameters = b"GET /version?" + b"a=%41&" * 160_000 + b" HTTP/1.1\r\n\r\n"
    with server.connect() as one, server.connect() as other:
        used = server.cpu_s()
        one.sendall(repeated)
        assert one.recv(12) == b"HTTP/1.1 200"
        other.sendall(parameters)
        assert read_all(other).startswith(b"HTTP/1.1 400 ")
        used = server.cpu_s() - used

    assert used < 3


def test_a_request_line_sent_byte_by_byte_is_parsed_in_linear_time(server: Attacked) -> None:
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"GET /" + b"a" * 900_000)
        used = server.cpu_s()
        for _ in range(3000):
            connection.send(b"a")
        connection.sendall(b" HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 403 ")

    assert server.cpu_s() - used < 2


def test_descriptors_of_disconnected_clients_are_closed(server: Attacked) -> None:
    before = server.files_at_start
    states = [
        b"",
        b"GET / HT",
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
        PARTIAL_CLIENT_HELLO,
        request("/version"),
        request("/api/v1/pods?watch=1"),
        request("/openapi/v2") * 20,
    ]
    assert wait_until(lambda: server.open_files() <= before)
    connections = [server.connect() for _ in range(20) for _ in states]
    for number, connection in enumerate(connections):
        connection.sendall(states[number % len(states)])
    assert wait_until(lambda: server.open_files() >= before + len(connections))

    for connection in connections:
        connection.close()

    assert wait_until(lambda: server.open_files() <= before)


def test_partial_client_hellos_allocate_no_memory(tmp_path: Path) -> None:
    with attacked(tmp_path, "--bare") as server, contextlib.ExitStack() as stack:
        server.ask("/version")
        before = server.memory_mb()
        for _ in range(700):
            stack.enter_context(server.connect()).sendall(PARTIAL_CLIENT_HELLO)
        server.ask("/version")

        assert server.memory_mb() < before + 10


def test_memory_of_handshakes_is_freed_when_clients_disconnect(tmp_path: Path) -> None:
    with attacked(tmp_path, "--bare") as server:
        server.ask("/version")
        before = server.memory_mb()
        with contextlib.ExitStack() as stack:
            for _ in range(700):
                stack.enter_context(server.connect()).sendall(client_hello())
            grew = wait_until(lambda: server.memory_mb() > before + 20)
            time.sleep(2.5)  # longer than the server takes to detect that nothing happens

        assert grew
        assert wait_until(lambda: server.memory_mb() < before + 15)


def test_requests_are_served_while_idle_clients_hold_all_connections(tmp_path: Path) -> None:
    with attacked(tmp_path, "--bare", files=120) as server, contextlib.ExitStack() as stack:
        for number in range(200):
            connection = stack.enter_context(server.connect())
            if number % 2:
                connection.sendall(PARTIAL_CLIENT_HELLO)
        answered = server.ask("/version")
        used = server.cpu_s()
        time.sleep(1)
        idle = server.cpu_s() - used

        assert answered.startswith(b"HTTP/1.1 200 ")
        # It does not repeatedly try to accept connections for which it has no room.
        assert idle < 0.5
        assert server.end() == 0
        assert len(server.errors.read_text().splitlines()) < 100
        assert "Traceback" not in server.errors.read_text()
