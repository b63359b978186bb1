"""Bodies that take seconds to parse are parsed in another thread, so other clients and the shutdown do not wait."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from batkube.api.connections.event_loop.server_connections import EventLoopConnection, ServerConnections
from batkube.api.requests.messages import NeedsWorkerThread, Request, Response
from hostile.attacked import Attacked, attacked, read_all, request

MIB = 1024 * 1024
LONG = b"a" * 100_000
#: The most nodes in YAML of this size; a body may be six times as large, which takes seconds to parse.
DENSE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: [" + b"a," * (MIB // 4) + b"a]\n"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Slow:
    """A handler whose long requests last until the test ends them."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def handle(self, request: Request) -> Response:
        if request.may_defer:
            raise NeedsWorkerThread(lambda: self._work(request))
        return Response(200, f"{request.path} {request.parsed_body};".encode(), "text/plain")

    def _work(self, request: Request) -> None:
        self.may_end.wait(20)
        request.parsed_body = "read"

    def too_large(self) -> Response:
        return Response(413, b"", "text/plain")


def asking(path: str, body: bytes = b"") -> bytes:
    return f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def answers_to_two() -> tuple[bytes, bytes]:
    """Return the answer to one client while another's long request is parsed, and then the answer to the other."""
    loop, slow = asyncio.get_running_loop(), Slow()
    crowd = ServerConnections(loop)
    server = await loop.create_server(lambda: EventLoopConnection(slow, crowd), "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    theirs, writer = await asyncio.open_connection(*address)
    writer.write(asking("/long", LONG) + asking("/next"))
    while not any(connection.is_full for connection in crowd.connections):
        await asyncio.sleep(0.01)
    ours, other = await asyncio.open_connection(*address)
    other.write(asking("/other"))
    meanwhile = await ours.readuntil(b";")
    slow.may_end.set()
    then = await theirs.readuntil(b"/next None;")
    for each in (writer, other):
        each.close()
        await each.wait_closed()
    server.close()
    crowd.close()
    return meanwhile, then


def test_other_clients_are_served_while_a_worker_thread_parses_and_the_same_client_in_order() -> None:
    meanwhile, then = asyncio.run(answers_to_two())

    assert meanwhile.endswith(b"/other None;")
    assert then.index(b"/long read;") < then.index(b"/next None;")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Attacked]:
    with attacked(tmp_path, "--bare") as running:
        yield running


def send_dense(server: Attacked) -> socket.socket:
    head = request(CONFIG_MAPS, "POST", b"", "Content-Type: application/yaml", f"Content-Length: {len(DENSE)}")
    connection = server.connect()
    connection.sendall(head + DENSE)
    return connection


def is_answered(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(120)


def test_dense_yaml_does_not_delay_other_clients(server: Attacked) -> None:
    with send_dense(server) as connection:
        others = [server.ask("/version") for _ in range(5)]
        others_were_first = not is_answered(connection)
        answer = connection.recv(12)

    assert all(other.startswith(b"HTTP/1.1 200") for other in others)
    assert others_were_first
    assert answer == b"HTTP/1.1 201"


def test_a_server_shuts_down_while_it_parses_dense_yaml(server: Attacked) -> None:
    with send_dense(server) as connection:
        server.ask("/version")
        code = server.end()
        answer = read_all(connection)

    assert code == 0
    assert answer == b""
