"""Programs in Python on the run's clock: asyncio, threads, and functions that return the time."""

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
import asyncio, datetime, queue, random, threading, time

began = time.monotonic()
def tell(*what):
    print(f"{time.monotonic() - began:g}", *what, flush=True)

async def tick(period):
    for _ in range(3):
        await asyncio.sleep(period)
        tell("tick of", period)

async def loop():
    await asyncio.sleep(100)
    tell("asyncio.sleep")
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 50)
    except TimeoutError:
        tell("wait_for")
    await asyncio.gather(tick(7), tick(11))
    await asyncio.to_thread(time.sleep, 30)
    tell("to_thread")

print(int(time.time()), time.gmtime().tm_year, datetime.datetime.now(datetime.UTC).isoformat(), datetime.date.today())
print(isinstance(datetime.datetime.now(), datetime.datetime), isinstance(datetime.datetime.now(), datetime.date))
time.sleep(3600)
tell("sleep")
asyncio.run(loop())
jobs = queue.Queue()
try:
    jobs.get(timeout=20)
except queue.Empty:
    tell("queue empty")
threading.Timer(40, lambda: jobs.put("a job")).start()
tell(jobs.get(timeout=60))
tell("event", threading.Event().wait(5))
lock = threading.Lock()
with lock:
    tell("lock", lock.acquire(timeout=3))
"""
LINES = """
3600 sleep
3700 asyncio.sleep
3750 wait_for
3757 tick of 7
3761 tick of 11
3764 tick of 7
3771 tick of 7
3772 tick of 11
3783 tick of 11
3813 to_thread
3833 queue empty
3873 a job
3878 event False
3881 lock False
"""


def test_all_timed_waits_of_python_are_in_virtual_time(session: SessionPage, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    moment, kinds, *rest = run_to_end(session, {}, sys.executable, str(Path(clock.__file__).parent), str(program))

    assert moment == f"{START_NS // 10**9} 2000 2000-01-01T00:00:00+00:00 2000-01-01"
    assert kinds == "True True"
    assert rest == LINES.split("\n")[1:-1]


def test_outside_a_run_the_clock_is_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BATKUBE_CLOCK", raising=False)
    before = time.time
    assert not clock.install()
    assert time.time is before


BATCHES = """
import asyncio, socket, ssl, sys, time

way, address, trust = sys.argv[1], ("127.0.0.1", int(sys.argv[2])), ssl.create_default_context(cafile=sys.argv[3])
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
    began = time.monotonic()
    try:
        sock.recv(1)
    except TimeoutError:
        print("timed out after", time.monotonic() - began)

def wrapped():
    read(trust.wrap_socket(socket.create_connection(address), server_hostname=address[0]))

def connected_later():
    sock = trust.wrap_socket(socket.socket(), server_hostname=address[0])
    sock.connect(address)
    read(sock)

async def in_a_loop():
    reader, writer = await asyncio.open_connection(*address, ssl=trust, limit=1 << 20)
    for _ in range(count):
        print(len(await reader.read(1 << 20)), flush=True)
        writer.write(b".")
    began = time.monotonic()
    try:
        await asyncio.wait_for(reader.read(1), 30)
    except TimeoutError:
        print("timed out after", time.monotonic() - began, flush=True)
    writer.transport.abort()

{"wrapped": wrapped, "connected-later": connected_later, "asyncio": lambda: asyncio.run(in_a_loop())}[way]()
"""
#: The largest ones are of several TLS records.
SIZES = [1, 100, 20_000, 50_000, 3, 40_000]


def shown_in_parts(page: SessionPage, listener: socket.socket, context: ssl.SSLContext) -> None:
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


@pytest.mark.parametrize("way", ["wrapped", "connected-later", "asyncio"])
def test_over_tls_as_well_a_piece_is_read_whole_and_counted(listener: socket.socket, tmp_path: Path, way: str) -> None:
    program, port = tmp_path / "program.py", listener.getsockname()[1]
    program.write_text(BATCHES)
    context = write_service_account(tmp_path / "account", "token", "127.0.0.1")
    page = SessionPage(START_NS, deterministic=True, seed=77, port=port)
    with contextlib.closing(page):
        server = threading.Thread(target=shown_in_parts, args=(page, listener, context), daemon=True)
        server.start()
        command = (sys.executable, str(Path(clock.__file__).parent), str(program))
        trust = str(tmp_path / "account" / "ca.crt")
        lines = run_to_end(page, {}, *command, way, str(port), trust, str(len(SIZES)))
        server.join(10)

    assert lines == [*map(str, SIZES), "timed out after 30.0"]
