"""The listening socket of one program: a port on the loopback to which nobody else gets through.

Any process of the machine can connect to a port on the loopback. What it does there must not move anything in a run, so
whoever connects is looked at before anything of his is read or counted, and a stranger is cut off at once. Invited are
the program and the processes that it started.

Somebody who connects and closes before he is looked at cannot be told any more. If he sent nothing, it makes no
difference. If what he sent begins with the passphrase, a part of every path that only the program has been told, he may
have been the program; but who may read the program's files has read the passphrase, too. So he comes in only if the
program has counted more connections of its own than have come in.
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
#: Closing such a socket resets its connection: nothing remains of it (socket(7): on, for 0 seconds).
_LINGER_RESET = struct.pack("ii", 1, 0)
_PEEK_BYTES = 1024

#: Where a connection comes from that was reset.
_RESET_ADDRESS: Address = ("", 0)

_AcceptedConnection = tuple[socket.socket, Address]


class _AllowedProgram:
    """Who is invited: a process, and those that it has started."""

    def __init__(self, pid: int, connects: Callable[[], int]) -> None:
        self._pid = pid
        self._sockets = ProcessSockets(pid)
        #: How many connections it has counted itself.
        self.connection_count = connects

    def sockets(self, inodes: set[int]) -> set[int]:
        """Return those of the sockets that are the program's."""
        held = self._sockets.held(inodes)
        if held != inodes:
            held = held.union(*(ProcessSockets(pid).held(inodes) for pid in session_members(self._pid)))
        return held

    def forget(self, inode: int) -> None:
        """Take a socket for closed."""
        self._sockets.forget(inode)


class ProgramListener:
    """A listening socket, and who may come in."""

    def __init__(self, passphrase: str, port: int = 0) -> None:
        """`port` is where the program looks for us; if it does not care, any that is free. Raises OSError."""
        self.sock = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
        self.sock.setblocking(False)
        self._passphrase_pattern = re.compile(rf"[A-Z]+ /{re.escape(passphrase)}/".encode())
        self._socket_table = _verified_socket_table()
        #: Who is invited; nobody as long as the program has not started.
        self._program: _AllowedProgram | None = None
        self._accepted_total = 0
        #: The sockets at the other ends of the program's connections, by our own descriptors.
        self._inodes: dict[int, int] = {}
        #: Connections of the program's, ever.
        self.accepted = 0
        #: Connections that were closed in silence before it could be told whose they were, ever.
        self.closed_unidentified = 0

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.sock.getsockname()[1])

    @property
    def can_identify_program(self) -> bool:
        """Whether strangers can be told from the program; if not, everybody comes in."""
        return self._socket_table is not None

    def allow(self, pid: int, connects: Callable[[], int] = lambda: 0) -> None:
        """Let a program in, which has begun a session of its own and counts its connections, if it can."""
        self._program = _AllowedProgram(pid, connects)

    @property
    def rejected(self) -> int:
        """How many connections of other processes were refused since the port is open."""
        return self._accepted_total - self.accepted - self.closed_unidentified

    def accept_program_connections(self) -> list[socket.socket]:
        """Accept those who wait, at most as many as can wait at a time, and return the program's connections.

        They never block, and take whole answers at once.
        """
        if self._program is None:
            return []
        waiting = list(islice(self._accept_all(), _BACKLOG))
        self._accepted_total += len(waiting)
        invited = self._filter_program_connections(waiting, self._program)
        for sock in invited:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self.accepted += len(invited)
        return invited

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
        """Return the program's connections in their order, and cut the others off."""
        if self._socket_table is None:
            return [sock for sock, _ in waiting]
        inodes = [self._peer_inode(address) for _, address in waiting]
        held = program.sockets({inode for inode in inodes if inode})
        missing = program.connection_count() - self.accepted - len(held)
        invited = []
        for (sock, address), inode in zip(waiting, inodes, strict=True):
            # What the program closed while we looked through all that it holds was not among that any more.
            is_closed = inode == 0 or (inode not in held and self._peer_inode(address) == 0)
            was_programs = is_closed and self._sent_passphrase(sock) and missing > 0
            missing -= was_programs
            if inode in held or was_programs:
                invited.append(sock)
                self._inodes[sock.fileno()] = inode or 0
            else:
                _reset_connection(sock)
        return invited

    def forget(self, sock: socket.socket) -> None:
        """Take the program's end of a connection for closed; called before ours is."""
        inode = self._inodes.pop(sock.fileno(), 0)
        if self._program is not None:
            self._program.forget(inode)

    def _peer_inode(self, address: Address) -> int | None:
        """Return the socket at the other end, 0 when it is closed, None when it is another user's."""
        assert self._socket_table is not None
        return _peer_inode_of_user(self._socket_table, address, self.sock.getsockname())

    def _sent_passphrase(self, sock: socket.socket) -> bool:
        """Return whether a connection that is closed may have been the program's, by what was said on it."""
        words = b""
        with contextlib.suppress(OSError):
            words = sock.recv(_PEEK_BYTES, socket.MSG_PEEK)
        self.closed_unidentified += not words
        return self._passphrase_pattern.match(words) is not None

    def has_bytes_in_flight(self, connections: Iterable[socket.socket]) -> bool:
        """Return whether the program still connects, or anything is on its way on one of its connections."""
        if self._socket_table is None or self._program is None:
            return False
        calling = {end.inode: end for end in self._socket_table.connected_to(self.port) if end.inode}
        own = {calling[inode].port: calling[inode] for inode in self._program.sockets(set(calling))}
        for sock in connections:
            address = _peer_address(sock)
            theirs = own.pop(address[1], None)
            if theirs is not None and (theirs.unsent or (not theirs.unread and self._has_unsent(address))):
                return True
        return bool(own)  # those that are not accepted yet

    def unread_bytes(self, connections: Iterable[socket.socket]) -> int:
        """Return how many bytes wait at the other ends of connections to be read."""
        if self._socket_table is None:
            return 0
        here = self.sock.getsockname()
        addresses = [address for sock in connections if (address := _peer_address(sock)) != _RESET_ADDRESS]
        ends = [self._socket_table.find(address, here) for address in addresses]
        return sum(end.unread for end in ends if end is not None)

    def _has_unsent(self, to: Address) -> bool:
        """Return whether something that we sent has not arrived."""
        assert self._socket_table is not None
        ours = self._socket_table.find(self.sock.getsockname(), to)
        return ours is not None and ours.unsent > 0

    def close(self) -> None:
        """Stop listening."""
        self.sock.close()
        if self._socket_table is not None:
            self._socket_table.close()


def _peer_inode_of_user(table: SocketTable, address: Address, here: Address) -> int | None:
    """Return the socket at the other end, 0 when it is closed; None when it is another user's."""
    end = table.find(address, here)
    if end is None or not end.inode:
        return 0
    return end.inode if end.uid == os.geteuid() else None


def _peer_address(sock: socket.socket) -> Address:
    """Return where a connection comes from; nowhere if it was reset."""
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
    """Return the kernel's table of sockets, if it is there and tells the truth of a connection of our own."""
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
