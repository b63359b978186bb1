"""Python programs in virtual time over TLS: each piece is read whole."""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.timing.pages.test_session_page import START_NS, run_to_end

from batkube import clock
from batkube.api.connections.protocol.tls_session import TlsSession
from batkube.programs.startup.service_account import write_service_account
from batkube.timing.pages.session_page import SessionPage

PROGRAM = """
import asyncio, socket, ssl, sys, time

mode, address, trust = sys.argv[1], ("127.0.0.1", int(sys.argv[2])), ssl.create_default_context(cafile=sys.argv[3])
count = int(sys.argv[4])

def read(sock):
    for _ in range(count):
        batch = sock.recv(1 << 16)
        sock.setblocking(False)
        try:
            while more := sock.recv(1 << 16):
                batch += more
        except ssl.SSLWantReadError:
            pass
        sock.setblocking(True)
        print(len(batch), flush=True)
        sock.sendall(b".")
    sock.settimeout(30)
    start = time.monotonic()
    try:
        sock.recv(1)
    except TimeoutError:
        print("timed out after", time.monotonic() - start)

def wrapped():
    read(trust.wrap_socket(socket.create_connection(address), server_hostname=address[0]))

def connected_later():
    sock = trust.wrap_socket(socket.socket(), server_hostname=address[0])
    sock.connect(address)
    read(sock)

async def with_asyncio():
    reader, writer = await asyncio.open_connection(*address, ssl=trust, limit=1 << 20)
    for _ in range(count):
        print(len(await reader.read(1 << 20)), flush=True)
        writer.write(b".")
    start = time.monotonic()
    try:
        await asyncio.wait_for(reader.read(1), 30)
    except TimeoutError:
        print("timed out after", time.monotonic() - start, flush=True)
    writer.transport.abort()

{"wrapped": wrapped, "connected-later": connected_later, "asyncio": lambda: asyncio.run(with_asyncio())}[mode]()
"""


#: The largest pieces consist of several TLS records.
SIZES = [1, 100, 20_000, 50_000, 3, 40_000]


def serve_in_parts(page: SessionPage, listener: socket.socket, context: ssl.SSLContext) -> None:
    """Serve one connection over TLS: announce each piece, then send it in two parts, some milliseconds apart."""
    connection, (_, port) = listener.accept()
    connection.settimeout(5)
    tls, total = TlsSession(context), 0

    def send(piece: bytes) -> None:
        nonlocal total
        total += len(piece)
        page.announce(port, total)
        connection.sendall(piece[: len(piece) // 3])
        time.sleep(0.01)
        connection.sendall(piece[len(piece) // 3 :])

    while not tls.is_greeted:
        _, reply = tls.decrypt(connection.recv(1 << 16))
        if reply:
            send(reply)
    for size in SIZES:
        send(tls.encrypt(bytes(size)))
        tls.decrypt(connection.recv(1 << 16))  # the program confirms the piece, so that it reads the next one by itself
        assert page.bytes_read == total
    with contextlib.suppress(TimeoutError):
        connection.recv(1)  # the program ends the connection
    connection.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.mark.parametrize("mode", ["wrapped", "connected-later", "asyncio"])
def test_over_tls_each_piece_is_read_whole_and_counted(listener: socket.socket, tmp_path: Path, mode: str) -> None:
    program, port = tmp_path / "program.py", listener.getsockname()[1]
    program.write_text(PROGRAM)
    context = write_service_account(tmp_path / "account", "token", "127.0.0.1")
    page = SessionPage(START_NS, deterministic=True, seed=77, port=port)
    with contextlib.closing(page):
        server = threading.Thread(target=serve_in_parts, args=(page, listener, context), daemon=True)
        server.start()
        command = (sys.executable, str(Path(clock.__file__).parent), str(program))
        trust = str(tmp_path / "account" / "ca.crt")
        lines = run_to_end(page, {}, *command, mode, str(port), trust, str(len(SIZES)))
        server.join(10)

    assert lines == [*map(str, SIZES), "timed out after 30.0"]
