"""The server of a run: it reads and writes only when it is called."""

from __future__ import annotations

import itertools
import os
import random
import socket
import struct
from collections.abc import Iterator

import pytest
from tests.recording_handler import RecordingHandler

from batkube.api.connections.polled.program_listener import ProgramListener
from batkube.api.connections.polled.server import MAX_PIECE_BYTES, PolledServer
from batkube.api.connections.polled.transmission import DisturbedPieces, Transmission, WholePieces

GET = b"GET /api/v1/pods/a HTTP/1.1\r\nHost: x\r\n\r\n"
BIND = b"POST /api/v1/namespaces/default/pods/a/binding HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
EVENT = b"POST /api/v1/namespaces/default/events HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def paths() -> RecordingHandler:
    return RecordingHandler()


@pytest.fixture
def server(paths: RecordingHandler) -> Iterator[PolledServer]:
    listener = ProgramListener("secret")
    listener.allow(os.getpid())
    polled = PolledServer(paths, listener)
    yield polled
    polled.close()


def _collect(server: PolledServer, size: int) -> None:
    while server.received < size:
        server.read_ready(wait_s=1.0)


def test_requests_are_answered_only_on_call_in_the_order_of_connections(
    server: PolledServer, paths: RecordingHandler
) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.listener.port)) as first,
        socket.create_connection(("127.0.0.1", server.listener.port)) as second,
    ):
        second.sendall(BIND)
        first.sendall(GET)
        _collect(server, len(GET) + len(BIND))
        assert (server.listener.accepted, paths.requested) == (2, [])
        assert not server.send_next()
        server.answer_requests()
        assert paths.requested == ["/api/v1/pods/a", "/api/v1/namespaces/default/pods/a/binding"]
        assert server.send_next()
        assert first.recv(1000).endswith(b"ok")
        assert server.send_next()
        assert not server.send_next()
        assert second.recv(1000).endswith(b"ok")


def test_decisions_are_the_writes_about_one_pod(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET + BIND + EVENT)
        _collect(server, len(GET + BIND + EVENT))
        assert server.pending_pod_writes == 1
        server.answer_requests()
        assert server.pending_pod_writes == 0


def test_a_closed_connection_is_answered_before_it_is_dropped(server: PolledServer, paths: RecordingHandler) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET)
        client.shutdown(socket.SHUT_WR)
        _collect(server, len(GET))
    while server.read_ready():
        pass
    server.answer_requests()
    assert paths.requested == ["/api/v1/pods/a"]
    assert not server.send_next()


def test_a_long_answer_is_sent_in_pieces_before_the_answers_of_other_connections(
    server: PolledServer, paths: RecordingHandler
) -> None:
    body = paths.body = bytes(2 * MAX_PIECE_BYTES)
    with (
        socket.create_connection(("127.0.0.1", server.listener.port)) as first,
        socket.create_connection(("127.0.0.1", server.listener.port)) as second,
    ):
        first.sendall(GET)
        second.sendall(GET)
        _collect(server, 2 * len(GET))
        server.answer_requests()
        sent, pieces = [server.sent], 0
        while server.send_next():
            sent.append(server.sent)
            pieces += 1
        assert pieces == 6
        assert max(after - before for before, after in itertools.pairwise(sent)) == MAX_PIECE_BYTES
        for client in (first, second):
            assert _all_of(client, server.sent // 2).endswith(body)


def _all_of(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += client.recv(1 << 20)
    return data


class RecordedPage:
    """The program's side: the order of its connections, and the writes announced to it."""

    def __init__(self) -> None:
        self.bytes_read = 0
        self.orders: dict[int, int] = {}
        self.announced: list[tuple[int, int]] = []

    def connection_number(self, port: int) -> int:
        return self.orders.get(port, 0)

    def announce(self, port: int, total: int) -> None:
        self.announced.append((port, total))


def test_the_order_of_connections_is_that_of_the_program_not_of_the_kernel(
    server: PolledServer, paths: RecordingHandler
) -> None:
    server.page = page = RecordedPage()
    with (
        socket.create_connection(("127.0.0.1", server.listener.port)) as first,
        socket.create_connection(("127.0.0.1", server.listener.port)) as second,
    ):
        page.orders = {first.getsockname()[1]: 2, second.getsockname()[1]: 1}
        first.sendall(GET)
        second.sendall(BIND)
        _collect(server, len(GET) + len(BIND))
        server.answer_requests()
        assert paths.requested == ["/api/v1/namespaces/default/pods/a/binding", "/api/v1/pods/a"]


@pytest.mark.parametrize(
    "transmission",
    [WholePieces(), DisturbedPieces(random.Random(1), cut=True), DisturbedPieces(random.Random(1), True, pause=True)],
    ids=["whole", "cut", "late, cut, with pauses"],
)
def test_each_piece_and_the_end_of_a_connection_are_announced_before_they_are_sent(
    paths: RecordingHandler, transmission: Transmission
) -> None:
    listener = ProgramListener("secret")
    listener.allow(os.getpid())
    server = PolledServer(paths, listener, transmission=transmission)
    server.page = page = RecordedPage()
    body = paths.body = bytes(range(256)) * 2048
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        port = client.getsockname()[1]
        client.settimeout(5)
        request = GET.replace(b"Host", b"Connection: close\r\nHost")
        client.sendall(request)
        _collect(server, len(request))
        server.answer_requests()
        data = b""
        while server.send_next():
            assert page.announced[-1][0] == port
            if not server.dropped_connections:
                data += _all_of(client, page.announced[-1][1] - len(data))
                page.bytes_read = len(data)
        assert data.endswith(body)
        assert [total for _, total in page.announced] == [
            *range(MAX_PIECE_BYTES, len(data), MAX_PIECE_BYTES),
            len(data),
            len(data) + 1,
        ]
        assert client.recv(1) == b""
    server.close()


def test_a_connection_that_is_not_read_gets_no_more_than_fits_into_its_window(
    server: PolledServer, paths: RecordingHandler
) -> None:
    server.page = page = RecordedPage()
    paths.body = bytes(1 << 20)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 212_992)  # as programs do
        client.connect(("127.0.0.1", server.listener.port))
        client.sendall(GET)
        _collect(server, len(GET))
        server.answer_requests()
        while server.send_next():
            pass
        assert server.sent == MAX_PIECE_BYTES

        page.bytes_read = len(_all_of(client, MAX_PIECE_BYTES))
        assert server.send_next()
        assert server.sent == 2 * MAX_PIECE_BYTES
        server.retract_unsent()
        assert server.overflows == 0


def test_requests_are_read_at_once_but_not_answered(server: PolledServer, paths: RecordingHandler) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET)
        _collect(server, len(GET))
        assert not server.send_next()
        assert paths.requested == []


def test_a_connection_that_the_server_closes_is_dropped_when_everything_is_sent(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(b"this is not HTTP\r\n\r\n")
        _collect(server, 20)
        server.answer_requests()
        assert server.send_next()
        assert server.dropped_connections == 0
        assert server.send_next()
        assert (server.dropped_connections, server.send_next()) == (1, False)
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert client.recv(1000) == b""


def test_a_connection_that_is_cut_before_its_answer_is_sent_is_dropped_once(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.listener.port)) as client:
        client.sendall(GET)
        _collect(server, len(GET))
        server.answer_requests()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    while not server.read_ready():
        pass
    assert server.send_next()
    server.answer_requests()

    assert server.dropped_connections == 1
