"""The server of a run: it reads and writes only when it is told to."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from batkube.api.messages import Request, Response
from batkube.api.polling import PolledServer

GET = b"GET /api/v1/pods/a HTTP/1.1\r\nHost: x\r\n\r\n"
BIND = b"POST /api/v1/namespaces/default/pods/a/binding HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
EVENT = b"POST /api/v1/namespaces/default/events HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


class _Paths:
    """Answers everything, and remembers the paths asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def handle(self, request: Request) -> Response:
        self.asked.append(request.path)
        return Response(200, b"ok")

    def too_large(self) -> Response:
        return Response(413, b"")


@pytest.fixture
def paths() -> _Paths:
    return _Paths()


@pytest.fixture
def server(paths: _Paths) -> Iterator[PolledServer]:
    polled = PolledServer(paths)
    yield polled
    polled.close()


def _collect(server: PolledServer, size: int) -> None:
    while server.received < size:
        server.collect(wait_s=1.0)


def test_what_was_read_is_answered_only_when_told_in_the_order_of_connections(
    server: PolledServer, paths: _Paths
) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.port)) as first,
        socket.create_connection(("127.0.0.1", server.port)) as second,
    ):
        second.sendall(BIND)
        first.sendall(GET)
        _collect(server, len(GET) + len(BIND))
        assert (server.accepted, paths.asked) == (2, [])
        assert not server.send_one()
        server.answer()
        assert paths.asked == ["/api/v1/pods/a", "/api/v1/namespaces/default/pods/a/binding"]
        assert server.send_one()
        assert first.recv(1000).endswith(b"ok")
        assert server.send_one()
        assert not server.send_one()
        assert second.recv(1000).endswith(b"ok")


def test_decisions_are_the_writes_about_one_pod(server: PolledServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(GET + BIND + EVENT)
        _collect(server, len(GET + BIND + EVENT))
        assert server.decisions == 1
        server.answer()
        assert server.decisions == 0


def test_a_connection_that_ended_is_answered_first_and_then_dropped(server: PolledServer, paths: _Paths) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(GET)
        client.shutdown(socket.SHUT_WR)
        _collect(server, len(GET))
    while server.collect():
        pass
    server.answer()
    assert paths.asked == ["/api/v1/pods/a"]
    assert not server.send_one()
