"""The listener of a program: accepted and rejected connections, and data in flight."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from batkube.api.connections.polled import program_listener
from batkube.api.connections.polled.program_listener import ProgramListener
from batkube.api.connections.polled.socket_table import SocketTable

GET = b"GET /secret/api HTTP/1.1\r\n\r\n"
#: Arguments: port, data, user id. Connects to the port as the user, sends the data, and keeps the connection open.
CLIENT_PROGRAM = """
import os, socket, sys
if int(sys.argv[3]) != os.geteuid():
    os.setuid(int(sys.argv[3]))
with socket.socket() as caller:
    caller.connect(("127.0.0.1", int(sys.argv[1])))
    caller.sendall(sys.argv[2].encode())
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def listener() -> Iterator[ProgramListener]:
    ours = ProgramListener("secret")
    ours.allow(os.getpid())
    yield ours
    ours.close()


def _connect(listener: ProgramListener) -> socket.socket:
    return socket.create_connection(("127.0.0.1", listener.port), timeout=10)


def _counts(listener: ProgramListener) -> tuple[int, int, int]:
    return listener.accepted, listener.rejected, listener.closed_unidentified


def _start_client(listener: ProgramListener, *command: str, user: int = os.geteuid()) -> subprocess.Popen[bytes]:
    """Start another process that has connected to the listener and sent its data."""
    process = subprocess.Popen(
        [*command, sys.executable, "-c", CLIENT_PROGRAM, str(listener.port), GET.decode(), str(user)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.communicate()


def test_a_connection_of_the_program_is_accepted_before_it_sends_data(listener: ProgramListener) -> None:
    with _connect(listener) as first, _connect(listener) as second:
        let_in = listener.accept_program_connections()

        assert [sock.getpeername() for sock in let_in] == [first.getsockname(), second.getsockname()]
        assert _counts(listener) == (2, 0, 0)
        for sock in let_in:
            sock.close()


def test_another_process_of_the_same_user_is_rejected_even_with_the_passphrase(listener: ProgramListener) -> None:
    stranger = _start_client(listener)
    with _connect(listener):
        (own,) = listener.accept_program_connections()

        assert _counts(listener) == (1, 1, 0)
        own.close()
    _stop(stranger)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_rejected_even_in_the_same_session(listener: ProgramListener) -> None:
    stranger = _start_client(listener, user=65534)
    listener.allow(stranger.pid)

    assert listener.accept_program_connections() == []
    assert _counts(listener) == (0, 1, 0)
    _stop(stranger)


def test_a_process_started_by_the_program_is_accepted(listener: ProgramListener) -> None:
    program = _start_client(listener, "sh", "-c", '"$@"; exit', "sh")
    listener.allow(program.pid)
    (own,) = listener.accept_program_connections()

    assert own.recv(1000) == GET
    own.close()
    _stop(program)


def test_no_connection_is_accepted_before_the_program_is_known() -> None:
    listener = ProgramListener("secret")
    with _connect(listener):
        assert listener.accept_program_connections() == []
        listener.allow(os.getpid())
        (own,) = listener.accept_program_connections()
        own.close()
    listener.close()


def _send_and_close(listener: ProgramListener, *chunks: bytes) -> None:
    for words in chunks:
        with _connect(listener) as caller:
            caller.sendall(words)


def test_a_closed_connection_with_the_passphrase_is_accepted_if_the_program_counts_one_more() -> None:
    listener = ProgramListener("secret")
    listener.allow(os.getpid(), lambda: 2)
    with _connect(listener):
        _send_and_close(listener, GET, b"", b"GET /another/api HTTP/1.1\r\n\r\n", b"GET /sec", GET)
        let_in = listener.accept_program_connections()

    assert [sock.recv(1000) for sock in let_in] == [b"", GET]
    assert _counts(listener) == (2, 3, 1)
    for sock in let_in:
        sock.close()
    listener.close()


def test_a_closed_connection_with_the_passphrase_is_rejected_otherwise(listener: ProgramListener) -> None:
    _send_and_close(listener, GET, GET)

    assert listener.accept_program_connections() == []
    assert _counts(listener) == (0, 2, 0)


def test_a_reset_connection_has_no_data_in_flight(listener: ProgramListener) -> None:
    with _connect(listener) as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))

    assert listener.accept_program_connections() == []
    assert _counts(listener) == (0, 0, 1)


def test_a_rejected_connection_is_reset_at_once(listener: ProgramListener) -> None:
    listener.allow(_ended_process())
    with _connect(listener) as caller:
        caller.sendall(GET)
        assert listener.accept_program_connections() == []

        with pytest.raises(ConnectionResetError):
            caller.recv(1000)


def _ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


def test_an_unaccepted_connection_of_the_program_counts_as_in_flight(
    listener: ProgramListener,
) -> None:
    listener.sock.listen(0)
    with _connect(listener), socket.socket() as waiting:
        (own,) = listener.accept_program_connections()
        assert not listener.has_bytes_in_flight([own])
        with _connect(listener):
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", listener.port))

            assert listener.has_bytes_in_flight([own])
            listener.allow(_ended_process())
            assert not listener.has_bytes_in_flight([own])
        own.close()


def test_unsent_bytes_are_in_flight_and_unread_bytes_are_not(
    listener: ProgramListener,
) -> None:
    with _connect(listener) as caller:
        (own,) = listener.accept_program_connections()
        assert not listener.has_bytes_in_flight([own])
        _fill_send_buffer(caller)
        assert listener.has_bytes_in_flight([own])
        while own in _readable(own):
            own.recv(1 << 20)
        assert not listener.has_bytes_in_flight([own])

        _fill_send_buffer(own)  # the rest waits here, because the other side does not read
        assert not listener.has_bytes_in_flight([own])
        own.close()


def _fill_send_buffer(sock: socket.socket) -> None:
    sock.setblocking(False)
    try:
        while True:
            sock.send(bytes(1 << 20))
    except BlockingIOError:
        pass


def _readable(sock: socket.socket) -> list[socket.socket]:
    return select.select([sock], [], [], 0.3)[0]


def test_without_sock_diag_all_connections_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: SocketTable) -> None:
        raise PermissionError

    monkeypatch.setattr(program_listener.SocketTable, "__init__", refuse)
    listener = ProgramListener("secret")
    listener.allow(_ended_process())
    with _connect(listener):
        (own,) = listener.accept_program_connections()
        own.close()

    assert not listener.can_identify_program
    assert not listener.has_bytes_in_flight([])
    listener.close()
