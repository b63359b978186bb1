"""Every input is answered, without a crash and without leaks."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import random
import socket
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from batkube.api.requests.messages import Request, Response
from conformance import CASES
from conformance.client import Client
from conformance.direct import ADMIN, Direct, Reader
from conformance.mutating import body_of, worse_bytes, worse_request
from conformance.placeholders import Json, Unresolved, resolved
from conformance.replaying import case_files
from conformance.serving import Serving

SHARE_MADE_WORSE = 0.4


@pytest.fixture
def crashes(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    """Yield the log records of the server, which logs only internal errors."""
    with caplog.at_level(logging.ERROR):
        yield caplog.records


def send(direct: Direct, request: dict[str, Json], body: bytes) -> dict[str, Json]:
    """Return the response to a request, which may be invalid; a watch is opened and closed."""
    headers = {**ADMIN, **{name.lower(): str(value) for name, value in (request.get("headers") or {}).items()}}
    if body and "content-type" not in headers:
        headers["content-type"] = "application/json"
    query = {
        name: [str(item) for item in value] if isinstance(value, list) else [str(value)]
        for name, value in (request.get("query") or {}).items()
    }
    answer = direct.api.handle(Request(request["method"], request["path"], query, headers, body))
    if not isinstance(answer, Response):
        reader = Reader()
        answer.start(reader)
        answer.stop()
        return {"body": {}}
    assert 200 <= answer.status < 600
    assert all("\n" not in value and "\r" not in value for _, value in answer.headers)
    if answer.content_type.startswith("application/json"):
        return {"body": json.loads(answer.body)}
    return {"body": {}}


def flat(steps: list[Json]) -> Iterator[dict[str, Json]]:
    """Yield the requests of `steps`, including those during watches."""
    for step in steps:
        if "request" in step:
            yield step["request"]
        elif "watch" in step:
            yield {"method": "GET", **step["watch"], "query": {"watch": "true", **(step["watch"].get("query") or {})}}
            yield from flat(step["while"])
        else:
            yield {"method": "GET", "path": "/version"}  # a pause counts as a step


@pytest.mark.parametrize("seed", range(4))
def test_mutated_requests_of_recorded_cases_are_all_answered(seed: int, crashes: list[logging.LogRecord]) -> None:
    chance = random.Random(seed)
    direct = Direct()
    for path in case_files(CASES):
        results: list[Json] = []
        for template in flat(json.loads(path.read_text(encoding="utf-8"))["steps"]):
            try:
                request = resolved(template, results)
            except Unresolved:
                results.append({"body": {}})
                continue
            body = body_of(request)
            if chance.random() < SHARE_MADE_WORSE:
                request = worse_request(request, chance)
                body = worse_bytes(body_of(request), chance) if chance.random() < 0.15 else body_of(request)
            results.append(send(direct, request, body))
            assert not crashes, (path.name, request, crashes[-1].getMessage(), crashes[-1].exc_text)

    assert direct.api.watches.count() == 0


def test_stored_objects_can_be_listed_after_random_requests(crashes: list[logging.LogRecord]) -> None:
    chance = random.Random(7)
    direct = Direct()
    posts = [
        request
        for path in case_files(CASES)
        for request in flat(json.loads(path.read_text(encoding="utf-8"))["steps"])
        if request["method"] == "POST" and isinstance(request.get("body"), dict)
    ]
    for request in chance.sample(posts, 300):
        for _ in range(3):
            send(direct, worse_request(request, chance), body_of(worse_request(request, chance)))

    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    for path in sorted({request["path"] for request in posts}):
        send(direct, {"method": "GET", "path": path}, b"")
        send(direct, {"method": "GET", "path": path, "headers": {"accept": table}}, b"")
    assert not crashes, crashes[-1].exc_text


def test_rejected_requests_do_not_leak_memory() -> None:
    direct = Direct()

    def refuse(count: int, start: int) -> None:
        for number in range(start, start + count):
            body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A"}}'
            send(direct, {"method": "POST", "path": "/api/v1/namespaces/default/configmaps"}, body)
            send(direct, {"method": "GET", "path": f"/apis/unknown-{number}.example.com/v1/things"}, b"")
            send(direct, {"method": "GET", "path": f"/api/v1/namespaces/n{number}/things-{number}"}, b"")
            send(direct, {"method": f"M{number}", "path": "/api"}, b"")

    refuse(500, 0)
    gc.collect()
    tracemalloc.start()
    try:
        refuse(500, 1000)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert grown < 100_000


# At the socket


def exchange(server: Serving, data: bytes, *, half_close: bool = True, silence_s: float = 0.3) -> bytes:
    """Return the server's response to raw bytes, until it is silent or closes the connection."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as sock:
        sock.sendall(data)
        if half_close:
            # The server may have hung up already.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
        sock.settimeout(silence_s)
        response = b""
        try:
            while piece := sock.recv(65536):
                response += piece
        except (TimeoutError, ConnectionResetError):
            pass
        return response


def is_alive(server: Serving) -> bool:
    """Return whether the server answers a valid request."""
    with contextlib.closing(Client(server.url)) as client:
        return bool(client.request({"method": "GET", "path": "/version"})["status"] == 200)


def test_random_bytes_neither_hang_nor_crash_the_server(server: Serving, crashes: list[logging.LogRecord]) -> None:
    chance = random.Random(3)
    good = b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n"
    pieces = [chance.randbytes(chance.randrange(1, 200)) for _ in range(20)]
    pieces += [worse_bytes(good, chance) for _ in range(60)]

    for piece in pieces:
        response = exchange(server, piece)
        assert not response or response.startswith(b"HTTP/1.1 ")

    assert b"200 OK" in exchange(server, good)
    assert not crashes


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 2_000_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /%ff%fe%00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api?%ff=%zz&=&&a HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /api HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n" * 50,
    ],
    ids=lambda data: repr(data[:24]),
)
def test_unusual_requests_are_answered_or_rejected(
    server: Serving, crashes: list[logging.LogRecord], request_bytes: bytes
) -> None:
    response = exchange(server, request_bytes)

    assert not response or response.startswith(b"HTTP/1.1 ")
    assert is_alive(server)
    assert not crashes


def test_disconnected_clients_leave_no_watch_and_no_connection(server: Serving) -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    watch = b"GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n"
    before = open_files()
    for number in range(60):
        response = exchange(server, watch if number % 2 else watch[: -number // 2], half_close=False, silence_s=0.02)
        assert not response or response.startswith(b"HTTP/1.1 ")

    end = time.monotonic() + 5
    while time.monotonic() < end and (server.inside(server.api.watches.count) or open_files() > before):
        time.sleep(0.05)
    assert server.inside(server.api.watches.count) == 0
    assert open_files() <= before


def test_a_client_that_never_reads_is_throttled(server: Serving) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    path = "/api/v1/namespaces/default/configmaps"
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    with (
        contextlib.closing(Client(server.url)) as client,
        socket.create_connection((host, int(port)), timeout=5) as sock,
    ):
        client.request({"method": "POST", "path": path, "body": body})
        sock.sendall(b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n")
        tracemalloc.start()
        try:
            for number in range(60):
                body["data"] = {"x": f"{number}" * 150_000}
                assert client.request({"method": "PUT", "path": f"{path}/a", "body": body})["status"] == 200
            server.inside(server.store.compact)
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert held < 8_000_000
