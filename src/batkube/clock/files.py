"""Waiting for files and sockets, and counting what crosses the connections between the program and the run.

The kernel may deliver a piece that the run's server sends as several segments. The server announces each piece on the
page before it sends it, and whatever waits for a connection or reads from one waits until the whole piece has arrived,
so that the program cannot act upon a part of it.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import sys
import weakref
from collections.abc import Callable
from typing import Any

from .keeping import CONNECTS, ELSEWHERE, GOT, SENT, WROTE, ProgramClock

#: How many arguments of a reading method come before its flags.
_PLACE_OF_FLAGS = {"recv": 1, "recv_into": 2, "recvfrom": 1, "recvmsg": 2}
_INTERNET = (socket.AF_INET, socket.AF_INET6)
#: linux/tcp.h, struct tcp_info: the state of the connection is its first byte, tcpi_bytes_received begins at byte 128.
_RECEIVED = slice(128, 136)
#: TCP_CLOSE. The states above it have seen the end of the stream, or are closing.
_ENDED = 7
#: Room for what the run's server sends in one piece (api/connections/polling.py). Linux gives so much to every program:
#: it is the smallest default of net.core.rmem_max.
_RECEIVE_BUFFER = 212_992


class Traffic:
    """The program's connections."""

    def __init__(self, clock: ProgramClock) -> None:
        self._clock = clock
        self._page = clock.page
        #: Those to the run: the local port of each, by its file, and the other way round. A socket that its program
        #: forgets is closed.
        self._ports: dict[int, int] = {}
        self._to_run: weakref.WeakValueDictionary[int, socket.socket] = weakref.WeakValueDictionary()

    def await_arrival(self) -> None:
        """Wait, in real time, until the piece that the server has announced has arrived."""
        while not self._has_arrived(*self._page.announced):
            os.sched_yield()  # a thread that slept would be taken for idle (timing/sleepers.py)

    def _has_arrived(self, port: int, total: int) -> bool:
        sock = self._to_run.get(port)
        if sock is None:
            return True
        try:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.stop)
        except OSError:
            return True  # it was closed
        return info[0] >= _ENDED or int.from_bytes(info[_RECEIVED], sys.byteorder) >= total

    def await_file(self, file: int, events: int, seconds: float) -> bool:
        """Wait until something can be done with a file, at most so long; return whether it can."""
        bell = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            poll = select.poll()
            poll.register(bell, select.POLLIN)
            poll.register(file, events)
            with self._clock.waiting(seconds, lambda: os.eventfd_write(bell, 1)):
                return any(ready != bell for ready, _ in poll.poll())
        finally:
            os.close(bell)

    def moving(self, name: str, events: int, place: int) -> Callable[..., Any]:
        """Return a method of sockets that reads or writes, within the socket's timeout."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, *arguments: Any, **options: Any) -> Any:
            file = sock.fileno()
            is_to_run = file in self._ports
            if is_to_run and place == SENT:
                self._page.add(WROTE)
            seconds = sock.gettimeout()
            if seconds and not self.await_file(file, events, seconds):
                raise TimeoutError("timed out")
            if is_to_run and place == GOT:
                if seconds is None and not _flags(name, arguments, options) & socket.MSG_DONTWAIT:
                    _await_readable(file)
                self.await_arrival()
            result = real(sock, *arguments, **options)
            if is_to_run and not (place == GOT and _flags(name, arguments, options) & socket.MSG_PEEK):
                self._page.add(place, _bytes_moved(result, arguments))
            return result

        return method

    def connecting(self, name: str) -> Callable[..., Any]:
        """Return a method of sockets that begins a connection."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, address: Any) -> Any:
            if sock.family in _INTERNET and sock.type == socket.SOCK_STREAM:
                if address[1] == self._page.port and address[0] in ("localhost", "127.0.0.1"):
                    return self._connect_to_run(real, sock, address)
                self._page.add(ELSEWHERE)
            return real(sock, address)

        return method

    def _connect_to_run(self, connect: Callable[..., Any], sock: socket.socket, address: Any) -> Any:
        self._page.add(WROTE)
        self._page.add(CONNECTS)
        self._ports[sock.fileno()] = 0
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        try:
            return connect(sock, address)
        finally:
            port = sock.getsockname()[1]
            self._page.record_connection(port)
            self._ports[sock.fileno()], self._to_run[port] = port, sock

    def closing(self, name: str) -> Callable[..., Any]:
        """Return a method of sockets that ends a connection, or its own side of one."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, *arguments: Any) -> Any:
            if sock.fileno() in self._ports:
                self._page.add(WROTE)
                if name != "shutdown":
                    self._to_run.pop(self._ports.pop(sock.fileno()), None)
            return real(sock, *arguments)

        return method


def _flags(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> int:
    """Return the flags that a method of sockets was called with (its last argument)."""
    place = _PLACE_OF_FLAGS[name]
    flags = options.get("flags", arguments[place] if len(arguments) > place else 0)
    return int(flags)


def _await_readable(file: int) -> None:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    poll.poll()


def _bytes_moved(result: Any, arguments: tuple[Any, ...]) -> int:
    """Return how many bytes a call moved: what it says, or what it returns, or all that it was arguments."""
    if isinstance(result, int):
        return result
    moved = arguments[0] if result is None else result[0] if isinstance(result, tuple) else result
    return memoryview(moved).nbytes


def virtual_files(clock: ProgramClock) -> dict[tuple[object, str], object]:
    """Return what comes into the place of Python's own. asyncio waits for everything in a selector."""
    traffic = Traffic(clock)
    real_select = selectors.EpollSelector.select

    def select_until(self: selectors.EpollSelector, timeout: float | None = None) -> Any:
        if timeout is None:
            _await_readable(self.fileno())
        elif timeout > 0:
            traffic.await_file(self.fileno(), select.POLLIN, timeout)
        traffic.await_arrival()
        return real_select(self, 0)

    reading = {name: traffic.moving(name, select.POLLIN, GOT) for name in _PLACE_OF_FLAGS}
    writing = {name: traffic.moving(name, select.POLLOUT, SENT) for name in ("send", "sendall", "sendto", "sendmsg")}
    begin = {name: traffic.connecting(name) for name in ("connect", "connect_ex")}
    end = {name: traffic.closing(name) for name in ("_real_close", "detach", "shutdown")}
    all_of_them = reading | writing | begin | end
    methods: dict[tuple[object, str], object] = {(socket.socket, name): method for name, method in all_of_them.items()}
    return {**methods, (selectors.EpollSelector, "select"): select_until}
