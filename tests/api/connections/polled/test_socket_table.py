"""The kernel's table of sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from batkube.api.connections.polled.socket_table import ProcessSockets, SocketTable, session_members


@pytest.fixture
def table() -> Iterator[SocketTable]:
    sockets = SocketTable()
    yield sockets
    sockets.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_both_ends_of_a_connection_are_found_by_their_addresses(table: SocketTable, listener: socket.socket) -> None:
    here = listener.getsockname()
    with socket.create_connection(here) as client:
        client.sendall(b"hello")
        accepted, address = listener.accept()
        with accepted:
            accepted.recv(2)
            theirs, ours = table.find(address, here), table.find(here, address)

            assert theirs is not None
            assert ours is not None
            assert (theirs.inode, theirs.uid) == (os.fstat(client.fileno()).st_ino, os.geteuid())
            assert (ours.inode, ours.unread) == (os.fstat(accepted.fileno()).st_ino, 3)


def test_a_closed_end_has_no_inode(table: SocketTable, listener: socket.socket) -> None:
    here = listener.getsockname()
    client = socket.create_connection(here)
    accepted, address = listener.accept()
    client.close()
    with accepted:
        end = table.find(address, here)

        assert end is not None
        assert end.inode == 0


def test_a_listening_socket_is_not_mistaken_for_a_connection(table: SocketTable, listener: socket.socket) -> None:
    assert table.find(listener.getsockname(), ("127.0.0.1", 1)) is None


def test_accepted_and_pending_connections_are_listed(table: SocketTable) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as waiting:
        here = full.getsockname()
        assert table.connected_to(here[1]) == []
        with socket.create_connection(here) as connected:
            waiting.setblocking(False)
            waiting.connect_ex(here)

            found = {(end.inode, end.port) for end in table.connected_to(here[1])}
            assert found == {(os.fstat(one.fileno()).st_ino, one.getsockname()[1]) for one in (connected, waiting)}


def test_a_process_holds_its_sockets_and_an_ended_one_none() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with socket.socket() as own:
        wanted = {os.fstat(own.fileno()).st_ino}
        assert ProcessSockets(os.getpid()).held(wanted) == wanted
        assert ProcessSockets(ended.pid).held(wanted) == set()


def test_a_reused_descriptor_is_read_again() -> None:
    held = ProcessSockets(os.getpid())
    for _ in range(3):
        with socket.socket() as own:
            inode = os.fstat(own.fileno()).st_ino
            assert held.held({inode}) == {inode}
    assert held.held({inode + 1_000_000}) == set()


def test_new_sockets_are_found_without_scanning_all_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    held = ProcessSockets(os.getpid())
    many = [socket.socket() for _ in range(100)]
    inodes = [os.fstat(one.fileno()).st_ino for one in many]
    assert held.held(set(inodes)) == set(inodes)

    monkeypatch.setattr(os, "listdir", lambda _: pytest.fail("all descriptors were looked at"))
    for place in (70, 3, 40):
        many[place].close()
        held.forget(inodes[place])
    more = [socket.socket() for _ in range(5)]
    new = {os.fstat(one.fileno()).st_ino for one in more}

    assert held.held(new) == new
    for one in (*many, *more):
        one.close()


def test_a_session_consists_of_its_leader_and_the_processes_it_started() -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdout is not None
        leader.stdout.readline()
        members = session_members(leader.pid)
        leader.kill()
        for pid in members:
            if pid != leader.pid:
                os.kill(pid, 9)

    assert leader.pid in members
    assert len(members) == 2
    assert os.getpid() not in members
