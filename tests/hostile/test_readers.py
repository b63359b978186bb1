"""Clients that send requests and do not read the responses: memory is bounded, and others are served."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from hostile.attacked import Attacked, attacked, read_all, request

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with attacked(tmp_path_factory.mktemp("serve"), "--bare") as running:
        running.ask("/openapi/v2")
        pod = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "x" * 2000}]}}
        body = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}).encode()
        with running.connect() as connection:
            for _ in range(1000):
                connection.sendall(request(PODS, "POST", body))
                connection.recv(1 << 20)
        yield running


@pytest.mark.parametrize("path", ["/openapi/v2", PODS, f"{PODS}?watch=true&resourceVersion=0"])
def test_unread_responses_use_little_memory(server: Attacked, path: str) -> None:
    before = server.memory_mb()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            connection = stack.enter_context(server.connect())
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.send(request(path) * 500)
        answered = server.ask("/version")
        grown = server.memory_mb() - before

    assert answered.startswith(b"HTTP/1.1 200 ")
    # 20,000 answers of megabytes are asked for.
    assert grown < 250


def test_pipelined_requests_are_answered_in_order(server: Attacked) -> None:
    with server.connect() as connection:
        connection.sendall(
            request("/version")
            + request(PODS)
            + request("/readyz")
            + request("/livez", "GET", b"", "Connection: close")
        )
        connection.shutdown(socket.SHUT_WR)
        answered = read_all(connection)

    positions = [answered.index(part) for part in (b'"gitVersion"', b'"kind":"PodList"', b"\r\n\r\nok")]
    assert positions == sorted(positions)
    assert answered.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert answered.endswith(b"Connection: close\r\n\r\nok")
