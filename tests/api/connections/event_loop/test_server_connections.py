"""Connections after the end of a watch."""

from __future__ import annotations

import socket

import pytest

from batkube.api.connections.protocol.connection import Connection
from conformance.serving import Serving

WATCH = "/api/v1/namespaces?watch=true&timeoutSeconds=1"


def request(path: str, *headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: here", "Authorization: Bearer admin-token", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """Read to `end`, or to the end of the connection."""
    data = b""
    while not data.endswith(end) and (more := connection.recv(65536)):
        data += more
    return data


def connected(server: Serving) -> socket.socket:
    host, _, port = server.url.rpartition("/")[2].partition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def test_a_connection_can_be_reused_after_its_watch_has_ended(server: Serving) -> None:
    with connected(server) as connection:
        connection.sendall(request(WATCH))
        watched = read_until(connection, b"\r\n0\r\n\r\n")
        connection.sendall(request("/readyz"))
        answered = read_until(connection, b"\r\n\r\nok")

    assert watched.startswith(b"HTTP/1.1 200 OK")
    assert b'"type":"ADDED"' in watched
    assert answered.startswith(b"HTTP/1.1 200 OK")


def test_a_connection_with_data_during_its_watch_is_closed(server: Serving) -> None:
    with connected(server) as connection:
        connection.sendall(request(WATCH))
        assert connection.recv(1) == b"H"
        connection.sendall(request("/version"))
        rest = read_until(connection, b"never")

    assert rest.endswith(b"\r\n0\r\n\r\n")


def test_a_connection_is_closed_after_its_watch_on_request(server: Serving) -> None:
    with connected(server) as connection:
        connection.sendall(request(WATCH, "Connection: close"))
        watched = read_until(connection, b"never")

    assert b"Connection: close\r\n" in watched
    assert watched.endswith(b"\r\n0\r\n\r\n")


def test_a_long_response_ends_a_connection_without_an_error(server: Serving, caplog: pytest.LogCaptureFixture) -> None:
    """asyncio once logged a traceback, because its transport was closed while it resumed writing."""
    client, now = server.api.client("a-controller"), server.api.watches.now()
    for number in range(12):  # more than the buffers of the sockets hold
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}", "namespace": "default"}}
        server.inside(lambda value=value: client.create("configmaps", {**value, "data": {"a": "x" * 1_000_000}}, now))
    with connected(server) as connection:
        connection.sendall(request("/api/v1/namespaces/default/configmaps", "Connection: close"))
        received = 0
        while data := connection.recv(65536):
            received += len(data)

    assert received > 12_000_000
    server.inside(lambda: None)
    assert caplog.records == []


def test_a_protobuf_watch_of_a_compacted_version_gets_an_error_event(server: Serving) -> None:
    server.inside(server.store.compact)
    path = "/api/v1/namespaces?watch=true&resourceVersion=1"
    with connected(server) as connection:
        connection.sendall(request(path, "Accept: application/vnd.kubernetes.protobuf;stream=watch"))
        watched = read_until(connection, b"\r\n0\r\n\r\n")

    assert b"ERROR" in watched
    assert b"too old resource version: 1" in watched


def test_events_of_one_moment_are_sent_together(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hundreds of watches, most of the server's time goes into sending."""
    sent: list[bytes] = []
    send = Connection.write

    def record(connection: Connection, data: bytes) -> None:
        sent.append(data)
        send(connection, data)

    monkeypatch.setattr(Connection, "write", record)
    with connected(server) as connection:
        connection.sendall(request("/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0"))
        read_until(connection, b"\r\n\r\n")
        client, now = server.api.client("a-controller"), server.api.watches.now()

        def create(*names: str, size: int = 1) -> None:
            for name in names:
                metadata = {"name": name, "namespace": "default"}
                value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * size}}
                client.create("configmaps", value, now)

        server.inside(lambda: create("a", "b", "c"))
        server.inside(lambda: create("d"))
        server.inside(lambda: create("e", "f", size=40_000))
        received = b""
        while b'"name":"f"' not in received:
            received += connection.recv(65536)

    assert [chunk.count(b'"type":"ADDED"') for chunk in sent] == [3, 1, 1, 1]
