"""Who is at the other end of a connection over the loopback, as the kernel knows it.

TCP does not tell. But both ends belong to one kernel, which names the other end's socket by its inode (sock_diag(7), in
some ten microseconds), and /proc/PID/fd lists the sockets that a process holds. A socket that was closed has no
inode any more, and nobody can tell then whose it was.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY, _ERROR, _DONE = 20, 2, 3
_REQUEST, _DUMP = 0x1, 0x300
_ANY_STATE = 0xFFFFFFFF
_LISTEN = 10
#: linux/netlink.h: nlmsghdr.
_HEADER = struct.Struct("=IHHII")
#: linux/inet_diag.h: the start of inet_diag_req_v2, and inet_diag_sockid, whose ports and addresses go as on the wire.
_REQUEST_HEAD = struct.Struct("=BBxxI")
_ENDPOINTS = struct.Struct("!HH4s12x4s12x")
_ANY_INTERFACE_AND_COOKIE = bytes(4) + b"\xff" * 8
#: inet_diag_msg: after the family the state, then the places, of which we read the first port, then the rest of
#: `SocketInfo`.
_RESPONSE_BODY = struct.Struct("=xBxx2s50xIIII")
_MAX_RESPONSE_BYTES = 1 << 16
#: So many descriptors that were thought to be taken again may be free still before all are looked at.
_MAX_STILL_FREE = 64


class SocketInfo(NamedTuple):
    """One end of a connection."""

    port: int
    #: Bytes that have come and are not read, and bytes that the other end has not acknowledged.
    unread: int
    unsent: int
    uid: int
    #: 0 when it was closed.
    inode: int


Address = tuple[str, int]
_ANY_ADDRESS: Address = ("0.0.0.0", 0)


class SocketTable:
    """The kernel's table of TCP sockets. Raises OSError if the kernel does not let us ask."""

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._netlink.connect((0, 0))

    def find(self, of: Address, to: Address) -> SocketInfo | None:
        """Return the end at `of` of the connection between `of` and `to`; None when it was closed long ago."""
        # When there is no such connection, the kernel falls back to whoever listens at `of`.
        return next((end for state, end in self._query(_REQUEST, of, to) if state != _LISTEN), None)

    def connected_to(self, port: int) -> list[SocketInfo]:
        """Return all that are connected to a port, or wait to be: their ends."""
        return [end for _, end in self._query(_REQUEST | _DUMP, _ANY_ADDRESS, ("0.0.0.0", port))]

    def _query(self, flags: int, of: Address, to: Address) -> Iterator[tuple[int, SocketInfo]]:
        places = _ENDPOINTS.pack(of[1], to[1], socket.inet_aton(of[0]), socket.inet_aton(to[0]))
        question = (
            _REQUEST_HEAD.pack(socket.AF_INET, socket.IPPROTO_TCP, _ANY_STATE) + places + _ANY_INTERFACE_AND_COOKIE
        )
        self._netlink.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, flags, 0, 0) + question)
        while True:
            answer = memoryview(self._netlink.recv(_MAX_RESPONSE_BYTES))
            while answer:
                length, kind, _, _, _ = _HEADER.unpack_from(answer)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    _raise_unless_missing(answer)
                    return
                state, place, *rest = _RESPONSE_BODY.unpack_from(answer, _HEADER.size)
                yield state, SocketInfo(int.from_bytes(place), *rest)
                answer = answer[-(-length // 4) * 4 :]
            if flags == _REQUEST:
                return

    def close(self) -> None:
        """End the conversation with the kernel."""
        self._netlink.close()


def _raise_unless_missing(answer: memoryview) -> None:
    code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
    if code != errno.ENOENT:
        raise OSError(code, os.strerror(code))


class ProcessSockets:
    """The sockets that a process holds. One that has ended, or is not ours to look at, holds none.

    To go through thousands of descriptors takes milliseconds, and a scheduler that binds as many pods at once opens a
    connection for each. But a new socket gets the lowest descriptor that is free (socket(2)). So it is looked for at
    those that were closed since, then behind all others, and only then everywhere.
    """

    def __init__(self, pid: int) -> None:
        self._descriptor_folder = f"/proc/{pid}/fd"
        #: The descriptor of each socket that we have seen, by its inode.
        self._descriptors: dict[int, int] = {}
        #: Descriptors that are free as far as we know, the lowest first, and the first behind all that we have seen.
        self._free: list[int] = []
        self._next_descriptor = 0

    def held(self, wanted: set[int]) -> set[int]:
        """Return those of the `wanted` inodes that the process holds."""
        if not wanted <= self._descriptors.keys():
            self._scan_new_descriptors(wanted)
        if not wanted <= self._descriptors.keys():
            self._scan_all_descriptors()
        return wanted & self._descriptors.keys()

    def forget(self, inode: int) -> None:
        """Take a socket for closed."""
        descriptor = self._descriptors.pop(inode, None)
        if descriptor is not None:
            heapq.heappush(self._free, descriptor)

    def _scan_new_descriptors(self, wanted: set[int]) -> None:
        missing, still_free = wanted - self._descriptors.keys(), list[int]()
        while missing and self._free and len(still_free) < _MAX_STILL_FREE:
            descriptor = heapq.heappop(self._free)
            inode = self._read_inode(descriptor)
            if inode is None:
                still_free.append(descriptor)
            else:
                missing.discard(inode)
        for descriptor in still_free:
            heapq.heappush(self._free, descriptor)
        while missing and (inode := self._read_inode(self._next_descriptor)) is not None:
            missing.discard(inode)
            self._next_descriptor += 1

    def _scan_all_descriptors(self) -> None:
        self._descriptors.clear()
        self._free.clear()
        with contextlib.suppress(OSError):
            descriptors = [int(name) for name in os.listdir(self._descriptor_folder)]
            for descriptor in descriptors:
                self._read_inode(descriptor)
            self._next_descriptor = max(descriptors, default=-1) + 1

    def _read_inode(self, descriptor: int) -> int | None:
        """Return the inode behind a descriptor, and remember it; 0 for what is no socket, None if it is not in use."""
        try:
            kind, _, inode = os.readlink(f"{self._descriptor_folder}/{descriptor}").partition(":[")
        except OSError:
            return None
        if kind != "socket":
            return 0
        self._descriptors[int(inode[:-1])] = descriptor
        return int(inode[:-1])


def session_members(leader: int) -> list[int]:
    """Return the processes of the session that one began: what it started, unless that began a session of its own.

    A process cannot join another's session, so a stranger is never among them.
    """
    members = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            if os.getsid(pid := int(name)) == leader:
                members.append(pid)
    return members
