"""The listening socket for one program: a port on the loopback interface that rejects other processes.

Any process of the machine can connect to a port on the loopback interface. It must not influence a run, so the peer
process of each connection is identified before any of its data is read or counted. Connections of the program and of
processes that it has started are accepted; all others are reset.

The process behind a connection that was closed before the check cannot be identified. If it sent no data, it does not
matter. If its data begins with the passphrase, a part of every path that only the program knows, it may have been the
program. Since other processes could have read the passphrase from the program's files, the connection is accepted only
if the program itself has counted more connections than were accepted so far.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from batkube.api.connections.polled.socket_table import Address, ProcessSockets, SocketTable, session_members

_BACKLOG = 4096
_SEND_BUFFER_BYTES = 1 << 22
#: SO_LINGER on, with 0 seconds: closing the socket resets the connection (socket(7)).
_LINGER_RESET = struct.pack("ii", 1, 0)
_PEEK_BYTES = 1024

#: Stands for the peer address of a connection that was reset.
_RESET_ADDRESS: Address = ("", 0)

_AcceptedConnection = tuple[socket.socket, Address]


class _AllowedProgram:
    """The program whose connections are accepted, with the processes that it has started."""

    def __init__(self, pid: int, connects: Callable[[], int]) -> None:
        self._pid = pid
        self._sockets = ProcessSockets(pid)
        #: Returns how many connections the program itself has counted.
        self.connection_count = connects

    def sockets(self, inodes: set[int]) -> set[int]:
        """Return those of the sockets that belong to the program."""
        held = self._sockets.held(inodes)
        if held != inodes:
            held = held.union(*(ProcessSockets(pid).held(inodes) for pid in session_members(self._pid)))
        return held

    def forget(self, inode: int) -> None:
        """Forget a closed socket."""
        self._sockets.forget(inode)


class ProgramListener:
    """A listening socket that accepts the connections of one program."""

    def __init__(self, passphrase: str, port: int = 0) -> None:
        """Listen on `port`, 0 for any free one. Raises OSError."""
        self.sock = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
        self.sock.setblocking(False)
        self._passphrase_pattern = re.compile(rf"[A-Z]+ /{re.escape(passphrase)}/".encode())
        self._socket_table = _verified_socket_table()
        #: The program whose connections are accepted; None before it has started.
        self._program: _AllowedProgram | None = None
        self._accepted_total = 0
        #: The inodes of the program's sockets, by our own file descriptors.
        self._inodes: dict[int, int] = {}
        #: Number of accepted connections of the program.
        self.accepted = 0
        #: Number of connections that were closed without any data before their process could be identified.
        self.closed_unidentified = 0

    @property
    def port(self) -> int:
        """The port number."""
        return int(self.sock.getsockname()[1])

    @property
    def can_identify_program(self) -> bool:
        """Whether the kernel can identify the peer of a connection; if not, all connections are accepted."""
        return self._socket_table is not None

    def allow(self, pid: int, connects: Callable[[], int] = lambda: 0) -> None:
        """Accept connections of a program. `pid` leads a session; `connects` returns its own count of connections."""
        self._program = _AllowedProgram(pid, connects)

    @property
    def rejected(self) -> int:
        """How many connections of other processes were rejected so far."""
        return self._accepted_total - self.accepted - self.closed_unidentified

    def accept_program_connections(self) -> list[socket.socket]:
        """Accept pending connections, at most a full backlog, and return those of the program.

        The sockets are non-blocking, with send buffers large enough for whole responses.
        """
        if self._program is None:
            return []
        waiting = list(islice(self._accept_all(), _BACKLOG))
        self._accepted_total += len(waiting)
        accepted = self._filter_program_connections(waiting, self._program)
        for sock in accepted:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self.accepted += len(accepted)
        return accepted

    def _accept_all(self) -> Iterator[_AcceptedConnection]:
        with contextlib.suppress(BlockingIOError):
            while True:
                with contextlib.suppress(ConnectionAbortedError):
                    sock, address = self.sock.accept()
                    sock.setblocking(False)
                    yield sock, address

    def _filter_program_connections(
        self, waiting: Sequence[_AcceptedConnection], program: _AllowedProgram
    ) -> list[socket.socket]:
        """Return the program's connections in their order, and reset the others."""
        if self._socket_table is None:
            return [sock for sock, _ in waiting]
        inodes = [self._peer_inode(address) for _, address in waiting]
        held = program.sockets({inode for inode in inodes if inode})
        missing = program.connection_count() - self.accepted - len(held)
        accepted = []
        for (sock, address), inode in zip(waiting, inodes, strict=True):
            # The program may have closed a socket while its descriptors were scanned.
            is_closed = inode == 0 or (inode not in held and self._peer_inode(address) == 0)
            was_programs = is_closed and self._sent_passphrase(sock) and missing > 0
            missing -= was_programs
            if inode in held or was_programs:
                accepted.append(sock)
                self._inodes[sock.fileno()] = inode or 0
            else:
                _reset_connection(sock)
        return accepted

    def forget(self, sock: socket.socket) -> None:
        """Forget a connection that the program has closed; call it before closing `sock`."""
        inode = self._inodes.pop(sock.fileno(), 0)
        if self._program is not None:
            self._program.forget(inode)

    def _peer_inode(self, address: Address) -> int | None:
        """Return the inode of the peer's socket, 0 if it is closed, None if it belongs to another user."""
        assert self._socket_table is not None
        return _peer_inode_of_user(self._socket_table, address, self.sock.getsockname())

    def _sent_passphrase(self, sock: socket.socket) -> bool:
        """Return whether the data on a closed connection begins with a request that has the passphrase."""
        data = b""
        with contextlib.suppress(OSError):
            data = sock.recv(_PEEK_BYTES, socket.MSG_PEEK)
        self.closed_unidentified += not data
        return self._passphrase_pattern.match(data) is not None

    def has_bytes_in_flight(self, connections: Iterable[socket.socket]) -> bool:
        """Return whether a connection of the program is not accepted yet, or data is in flight on an accepted one."""
        if self._socket_table is None or self._program is None:
            return False
        peers = {end.inode: end for end in self._socket_table.connected_to(self.port) if end.inode}
        own = {peers[inode].port: peers[inode] for inode in self._program.sockets(set(peers))}
        for sock in connections:
            address = _peer_address(sock)
            peer = own.pop(address[1], None)
            if peer is not None and (peer.unsent or (not peer.unread and self._has_unsent(address))):
                return True
        return bool(own)  # what remains is not accepted yet

    def unread_bytes(self, connections: Iterable[socket.socket]) -> int:
        """Return how many bytes have arrived at the program on these connections but are unread."""
        if self._socket_table is None:
            return 0
        here = self.sock.getsockname()
        addresses = [address for sock in connections if (address := _peer_address(sock)) != _RESET_ADDRESS]
        ends = [self._socket_table.find(address, here) for address in addresses]
        return sum(end.unread for end in ends if end is not None)

    def _has_unsent(self, to: Address) -> bool:
        """Return whether data that we sent to `to` has not arrived."""
        assert self._socket_table is not None
        ours = self._socket_table.find(self.sock.getsockname(), to)
        return ours is not None and ours.unsent > 0

    def close(self) -> None:
        """Stop listening."""
        self.sock.close()
        if self._socket_table is not None:
            self._socket_table.close()


def _peer_inode_of_user(table: SocketTable, address: Address, here: Address) -> int | None:
    """Return the inode of the socket at `address`, 0 if it is closed, None if it belongs to another user."""
    end = table.find(address, here)
    if end is None or not end.inode:
        return 0
    return end.inode if end.uid == os.geteuid() else None


def _peer_address(sock: socket.socket) -> Address:
    """Return the peer address of a connection, `_RESET_ADDRESS` if it was reset."""
    try:
        address: Address = sock.getpeername()
    except OSError:
        return _RESET_ADDRESS
    return address


def _reset_connection(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
    sock.close()


def _verified_socket_table() -> SocketTable | None:
    """Return the kernel's table of sockets, or None if it is unavailable or wrong about a test connection."""
    try:
        table = SocketTable()
    except OSError:
        return None
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as own,
    ):
        inode = _peer_inode_of_user(table, own.getsockname(), listener.getsockname())
        if inode and inode == os.fstat(own.fileno()).st_ino and ProcessSockets(os.getpid()).held({inode}):
            return table
    table.close()
    return None
