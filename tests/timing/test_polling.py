"""The server of a run: it reads and writes only when it is told to."""

from __future__ import annotations

import itertools
import os
import socket
import struct
from collections.abc import Iterator

import pytest
from tests.asked_paths import AskedPaths

from batkube.api.connections.polling import PolledServer
from batkube.api.connections.program_listener import ProgramListener

GET = b"GET /api/v1/pods/a HTTP/1.1\r\nHost: x\r\n\r\n"
BIND = b"POST /api/v1/namespaces/default/pods/a/binding HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
EVENT = b"POST /api/v1/namespaces/default/events HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def paths() -> AskedPaths:
    return AskedPaths()


@pytest.fixture
def server(paths: AskedPaths) -> Iterator[PolledServer]:
    listener = ProgramListener("secret")
    listener.invite(os.getpid())
    polled = PolledServer(paths, listener)
    yield polled
    polled.close()


def _collect(server: PolledServer, size: int) -> None:
    while server.received < size:
        server.collect(wait_s=1.0)


def test_what_was_read_is_answered_only_when_told_in_the_order_of_connections(
    server: PolledServer, paths: AskedPaths
) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.listener.port)) as first,
        socket.create_connection(("127.0.0.1", server.listener.port)) as second,
    ):
        second.sendall(BIND)
        first.sendall(GET)
        _collect(server, len(GET) + len(BIND))
        assert (server.listener.let_in, paths.asked) == (2, [])
        assert not server.send_one()
        server.answer()
        assert paths.asked == ["/api/v1/pods/a", "/api/v1/namespaces/default/pods/a/binding"]
        assert server.send_one()
        assert first.recv(1000).endswith(b"ok")
        assert server.send_one()
        assert not server.send_one()
        assert second.recv(1000).endswith(b"ok")


def test_decisions_are_the_writes_about_one_pod(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET + BIND + EVENT)
        _collect(server, len(GET + BIND + EVENT))
        assert server.decisions == 1
        server.answer()
        assert server.decisions == 0


def test_a_connection_that_ended_is_answered_first_and_then_dropped(server: PolledServer, paths: AskedPaths) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET)
        client.shutdown(socket.SHUT_WR)
        _collect(server, len(GET))
    while server.collect():
        pass
    server.answer()
    assert paths.asked == ["/api/v1/pods/a"]
    assert not server.send_one()


def test_a_long_answer_goes_out_in_pieces_before_the_next_connection_has_its_turn(
    server: PolledServer, paths: AskedPaths
) -> None:
    body = paths.body = bytes(range(256)) * 1024
    with (
        socket.create_connection(("127.0.0.1", server.listener.port)) as first,
        socket.create_connection(("127.0.0.1", server.listener.port)) as second,
    ):
        first.sendall(GET)
        second.sendall(GET)
        _collect(server, 2 * len(GET))
        server.answer()
        sent, pieces = [server.sent], 0
        while server.send_one():
            sent.append(server.sent)
            pieces += 1
        assert pieces == 10
        assert max(after - before for before, after in itertools.pairwise(sent)) == 1 << 16
        for client in (first, second):
            assert _all_of(client, server.sent // 2).endswith(body)


def _all_of(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += client.recv(1 << 20)
    return data


def test_connections_are_admitted_without_being_read(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET)
        while server.listener.let_in == 0:
            server.admit()
        assert server.received == 0
        _collect(server, len(GET))


def test_a_connection_that_the_server_ends_is_dropped_when_everything_is_sent(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(b"this is not HTTP\r\n\r\n")
        _collect(server, 20)
        server.answer()
        assert server.send_one()
        assert server.dropped == 0
        assert server.send_one()
        assert (server.dropped, server.send_one()) == (1, False)
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert client.recv(1000) == b""


def test_a_connection_that_is_cut_before_its_answer_is_sent_is_dropped_once(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET)
        _collect(server, len(GET))
        server.answer()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    while not server.collect():
        pass
    assert server.send_one()
    server.answer()

    assert server.dropped == 1
