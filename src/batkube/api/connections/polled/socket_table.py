"""Identify the process at the other end of a loopback connection.

Both ends belong to the same kernel. sock_diag(7) returns the inode of the peer's socket, in some ten microseconds, and
/proc/PID/fd lists the sockets of a process. A closed socket has no inode any more, so its process cannot be identified.
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
#: linux/inet_diag.h: the head of inet_diag_req_v2, and inet_diag_sockid, whose ports and addresses are big-endian.
_REQUEST_HEAD = struct.Struct("=BBxxI")
_ENDPOINTS = struct.Struct("!HH4s12x4s12x")
_ANY_INTERFACE_AND_COOKIE = bytes(4) + b"\xff" * 8
#: inet_diag_msg: the family (skipped), the state, the source port out of inet_diag_sockid, then the fields of
#: `SocketInfo`.
_RESPONSE_BODY = struct.Struct("=xBxx2s50xIIII")
_MAX_RESPONSE_BYTES = 1 << 16
#: How many free descriptors are probed before all descriptors are scanned.
_MAX_STILL_FREE = 64


class SocketInfo(NamedTuple):
    """One end of a connection."""

    port: int
    #: Bytes that were received but not read, and bytes that were sent but not acknowledged.
    unread: int
    unsent: int
    uid: int
    #: 0 if the socket was closed.
    inode: int


Address = tuple[str, int]
_ANY_ADDRESS: Address = ("0.0.0.0", 0)


class SocketTable:
    """The kernel's table of TCP sockets. Raises OSError if it is not accessible."""

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._netlink.connect((0, 0))

    def find(self, of: Address, to: Address) -> SocketInfo | None:
        """Return the end at `of` of the connection between `of` and `to`; None if it was closed long ago."""
        # If there is no such connection, the kernel returns a socket that listens at `of`.
        return next((end for state, end in self._query(_REQUEST, of, to) if state != _LISTEN), None)

    def connected_to(self, port: int) -> list[SocketInfo]:
        """Return the client ends of all connections to a port, including those that are not accepted yet."""
        return [end for _, end in self._query(_REQUEST | _DUMP, _ANY_ADDRESS, ("0.0.0.0", port))]

    def _query(self, flags: int, of: Address, to: Address) -> Iterator[tuple[int, SocketInfo]]:
        endpoints = _ENDPOINTS.pack(of[1], to[1], socket.inet_aton(of[0]), socket.inet_aton(to[0]))
        request = (
            _REQUEST_HEAD.pack(socket.AF_INET, socket.IPPROTO_TCP, _ANY_STATE) + endpoints + _ANY_INTERFACE_AND_COOKIE
        )
        self._netlink.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, flags, 0, 0) + request)
        while True:
            response = memoryview(self._netlink.recv(_MAX_RESPONSE_BYTES))
            while response:
                length, kind, _, _, _ = _HEADER.unpack_from(response)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    _raise_unless_missing(response)
                    return
                state, place, *rest = _RESPONSE_BODY.unpack_from(response, _HEADER.size)
                yield state, SocketInfo(int.from_bytes(place), *rest)
                response = response[-(-length // 4) * 4 :]
            if flags == _REQUEST:
                return

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


def _raise_unless_missing(response: memoryview) -> None:
    code = -struct.unpack_from("=i", response, _HEADER.size)[0]
    if code != errno.ENOENT:
        raise OSError(code, os.strerror(code))


class ProcessSockets:
    """The sockets of a process; none if it has ended or is not accessible.

    A scan of thousands of descriptors takes milliseconds, and a scheduler that binds thousands of pods at once opens a
    connection for each. Since a new socket gets the lowest free descriptor (socket(2)), descriptors that were closed
    meanwhile are tried first, then those above all known ones, and only then all.
    """

    def __init__(self, pid: int) -> None:
        self._descriptor_folder = f"/proc/{pid}/fd"
        #: The descriptors of known sockets, by inode.
        self._descriptors: dict[int, int] = {}
        #: A heap of descriptors that are free as far as known, and the lowest one above all known descriptors.
        self._free: list[int] = []
        self._next_descriptor = 0

    def held(self, wanted: set[int]) -> set[int]:
        """Return those of the `wanted` inodes that belong to the process."""
        if not wanted <= self._descriptors.keys():
            self._scan_new_descriptors(wanted)
        if not wanted <= self._descriptors.keys():
            self._scan_all_descriptors()
        return wanted & self._descriptors.keys()

    def forget(self, inode: int) -> None:
        """Record that a socket was closed."""
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
        """Return the inode of a descriptor, and record it; 0 if it is not a socket, None if it is free."""
        try:
            kind, _, inode = os.readlink(f"{self._descriptor_folder}/{descriptor}").partition(":[")
        except OSError:
            return None
        if kind != "socket":
            return 0
        self._descriptors[int(inode[:-1])] = descriptor
        return int(inode[:-1])


def session_members(leader: int) -> list[int]:
    """Return the processes of the session with this leader: those that it started, unless they opened a new session.

    Unrelated processes are never among them, since a process cannot join an existing session.
    """
    members = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            if os.getsid(pid := int(name)) == leader:
                members.append(pid)
    return members
