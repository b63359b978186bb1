"""The server of a paced run answers requests at once, except for bindings, which are queued."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from tests.recording_handler import RecordingHandler

from batkube.api.connections.polled.program_listener import ProgramListener
from batkube.pacing.server import PacedServer

GET = b"GET /secret/api/v1/pods/a HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 20_000_000


def _bind(pod: str) -> bytes:
    head = f"POST /secret/api/v1/namespaces/default/pods/{pod}/binding HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
    return head.encode() + b"{}"


@pytest.fixture
def paths() -> RecordingHandler:
    return RecordingHandler()


@pytest.fixture
def server(paths: RecordingHandler) -> Iterator[PacedServer]:
    listener = ProgramListener("secret")
    listener.allow(os.getpid())
    paced = PacedServer(paths, listener)
    yield paced
    paced.close()


def _client(server: PacedServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.listener.port), timeout=10)


def _serve(server: PacedServer, received: int) -> None:
    while server.received < received:
        server.serve(0.1)


def test_a_request_is_answered_at_once(server: PacedServer) -> None:
    with _client(server) as client:
        client.sendall(GET)
        _serve(server, len(GET))

        assert client.recv(1000).endswith(b"ok")


def test_bindings_are_answered_one_at_a_time_in_order_of_arrival(server: PacedServer, paths: RecordingHandler) -> None:
    with _client(server) as first, _client(server) as second:
        second.sendall(_bind("b"))
        _serve(server, len(_bind("b")))
        first.sendall(_bind("a"))
        _serve(server, 2 * len(_bind("a")))
        assert (server.waiting_bindings, paths.requested) == (2, [])

        assert server.accept_binding()
        assert paths.requested == ["/secret/api/v1/namespaces/default/pods/b/binding"]
        assert second.recv(1000).endswith(b"ok")
        assert server.accept_binding()
        assert not server.accept_binding()
        assert first.recv(1000).endswith(b"ok")


def test_other_requests_are_answered_while_a_binding_is_queued(server: PacedServer) -> None:
    with _client(server) as scheduler, _client(server) as informer:
        scheduler.sendall(_bind("a"))
        _serve(server, len(_bind("a")))
        informer.sendall(GET)
        _serve(server, len(_bind("a")) + len(GET))

        assert informer.recv(1000).endswith(b"ok")
        assert server.waiting_bindings == 1


def test_a_binding_is_queued_once_it_is_complete(server: PacedServer, paths: RecordingHandler) -> None:
    request = _bind("a")
    head = request.index(b"\r\n\r\n") + 4
    with _client(server) as client:
        for part in (request[:head], request[head:-1]):
            client.sendall(part)
            _serve(server, server.received + len(part))
            assert not server.accept_binding()
        client.sendall(request[-1:])
        _serve(server, len(request))
        assert paths.requested == []

        assert server.accept_binding()
        assert len(paths.requested) == 1
        assert client.recv(1000).endswith(b"ok")


def test_a_queued_binding_is_dropped_when_its_client_disconnects(server: PacedServer, paths: RecordingHandler) -> None:
    with _client(server) as client:
        client.sendall(_bind("a"))
        _serve(server, len(_bind("a")))
    while server.waiting_bindings:
        server.serve(0.1)

    assert not server.accept_binding()
    assert paths.requested == []


def test_a_large_response_arrives_completely(server: PacedServer, paths: RecordingHandler) -> None:
    paths.body = b"x" * LARGE
    with _client(server) as client:
        client.sendall(GET)
        _serve(server, len(GET))
        client.setblocking(False)
        received = b""
        while not received.endswith(b"x" * 10) or len(received) < LARGE:
            server.serve(0.01)
            try:
                received += client.recv(1 << 20)
            except BlockingIOError:
                continue

    assert server.sent == len(received)
