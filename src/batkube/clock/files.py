"""Virtual waits for files and sockets, and traffic counters of the connections between the program and the run.

The kernel may deliver one response of the run's server in several segments. The server announces the length of each
piece on the page before it sends it. A wait for a connection, and a read from one, block until the whole piece has
arrived, so that the program cannot act on a part of it.
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

from .program_clock import CONNECTS, FOREIGN_CONNECTS, RECEIVED, SENT, WROTE, ProgramClock

#: Position of the flags argument in each method that reads.
_FLAGS_POSITION = {"recv": 1, "recv_into": 2, "recvfrom": 1, "recvmsg": 2}
_INTERNET = (socket.AF_INET, socket.AF_INET6)
#: linux/tcp.h, struct tcp_info: the state of the connection is its first byte, tcpi_bytes_received begins at byte 128.
_BYTES_RECEIVED = slice(128, 136)
#: TCP_CLOSE. In this state and the higher ones the stream has ended or is closing.
_TCP_CLOSE = 7
#: Size of the largest piece that the run's server sends at once (api/connections/polled/server.py): the smallest
#: default of net.core.rmem_max, which Linux grants to every program.
_RECEIVE_BUFFER = 212_992


class Connections:
    """The connections of this process."""

    def __init__(self, clock: ProgramClock) -> None:
        self._clock = clock
        self._page = clock.page
        #: Connections to the run: the local port by file descriptor, and the socket by local port. The references are
        #: weak, so that a socket that the program drops is closed.
        self._ports_by_file: dict[int, int] = {}
        self._sockets_by_port: weakref.WeakValueDictionary[int, socket.socket] = weakref.WeakValueDictionary()

    def wait_for_arrival(self) -> None:
        """Wait, in real time, until the announced piece has arrived."""
        while not self._has_arrived(*self._page.announced_arrival):
            os.sched_yield()  # a sleeping thread would count as idle (timing/pages/thread_states.py)

    def _has_arrived(self, port: int, total: int) -> bool:
        sock = self._sockets_by_port.get(port)
        if sock is None:
            return True
        try:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED.stop)
        except OSError:
            return True  # the socket is closed
        return info[0] >= _TCP_CLOSE or int.from_bytes(info[_BYTES_RECEIVED], sys.byteorder) >= total

    def wait_for_file(self, file: int, events: int, seconds: float) -> bool:
        """Wait until the file is ready for `events` or `seconds` have passed; return whether it is ready."""
        timeout = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            poll = select.poll()
            poll.register(timeout, select.POLLIN)
            poll.register(file, events)
            with self._clock.timer(seconds, lambda: os.eventfd_write(timeout, 1)):
                return any(ready != timeout for ready, _ in poll.poll())
        finally:
            os.close(timeout)

    def wrap_transfer(self, name: str, events: int, counter: int) -> Callable[..., Any]:
        """Return a socket method that reads or writes within the socket's timeout."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, *arguments: Any, **options: Any) -> Any:
            file = sock.fileno()
            is_run_connection = file in self._ports_by_file
            if is_run_connection and counter == SENT:
                self._page.increment(WROTE)
            seconds = sock.gettimeout()
            if seconds and not self.wait_for_file(file, events, seconds):
                raise TimeoutError("timed out")
            if is_run_connection and counter == RECEIVED:
                if seconds is None and not _flags(name, arguments, options) & socket.MSG_DONTWAIT:
                    _await(file, select.POLLIN)
                self.wait_for_arrival()
            result = real(sock, *arguments, **options)
            if is_run_connection and not (counter == RECEIVED and _flags(name, arguments, options) & socket.MSG_PEEK):
                self._page.increment(counter, _bytes_moved(result, arguments))
            return result

        return method

    def wrap_connect(self, name: str) -> Callable[..., Any]:
        """Return a socket method that opens a connection."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, address: Any) -> Any:
            if sock.family in _INTERNET and sock.type == socket.SOCK_STREAM:
                if address[1] == self._page.port and address[0] in ("localhost", "127.0.0.1"):
                    return self._connect_to_run(real, sock, address)
                self._page.increment(FOREIGN_CONNECTS)
            return real(sock, address)

        return method

    def _connect_to_run(self, connect: Callable[..., Any], sock: socket.socket, address: Any) -> Any:
        self._page.increment(WROTE)
        self._page.increment(CONNECTS)
        self._ports_by_file[sock.fileno()] = 0
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        try:
            return connect(sock, address)
        finally:
            port = sock.getsockname()[1]
            self._page.record_connection(port)
            self._ports_by_file[sock.fileno()], self._sockets_by_port[port] = port, sock

    def count_run_connection(self, sock: socket.socket) -> bool:
        """Return whether a socket is connected to the run, and count its bytes from now on."""
        if sock.fileno() in self._ports_by_file:
            return True
        try:
            is_to_run: bool = sock.getpeername()[:2] == ("127.0.0.1", self._page.port)
        except OSError:
            return False
        if is_to_run:
            port = sock.getsockname()[1]
            self._ports_by_file[sock.fileno()], self._sockets_by_port[port] = port, sock
        return is_to_run

    def await_writable(self, sock: socket.socket) -> None:
        """Wait, in real time, until the kernel accepts more data from the program."""
        _await(sock.fileno(), select.POLLOUT)

    def wrap_close(self, name: str) -> Callable[..., Any]:
        """Return a socket method that closes a connection or one direction of it."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, *arguments: Any) -> Any:
            if sock.fileno() in self._ports_by_file:
                self._page.increment(WROTE)
                if name != "shutdown":
                    self._sockets_by_port.pop(self._ports_by_file.pop(sock.fileno()), None)
            return real(sock, *arguments)

        return method


def _flags(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> int:
    """Return the flags passed to a socket method (its last argument)."""
    position = _FLAGS_POSITION[name]
    flags = options.get("flags", arguments[position] if len(arguments) > position else 0)
    return int(flags)


def _await(file: int, events: int) -> None:
    poll = select.poll()
    poll.register(file, events)
    poll.poll()


def _bytes_moved(result: Any, arguments: tuple[Any, ...]) -> int:
    """Return how many bytes a call moved: its result, the size of the data it returned, or the size of its argument."""
    if isinstance(result, int):
        return result
    data = arguments[0] if result is None else result[0] if isinstance(result, tuple) else result
    return memoryview(data).nbytes


def virtual_files(traffic: Connections) -> dict[tuple[object, str], object]:
    """Return the replacements for Python's sockets and selector; asyncio waits only in its selector."""
    real_select = selectors.EpollSelector.select

    def select_until(self: selectors.EpollSelector, timeout: float | None = None) -> Any:
        if timeout is None:
            _await(self.fileno(), select.POLLIN)
        elif timeout > 0:
            traffic.wait_for_file(self.fileno(), select.POLLIN, timeout)
        traffic.wait_for_arrival()
        return real_select(self, 0)

    reading = {name: traffic.wrap_transfer(name, select.POLLIN, RECEIVED) for name in _FLAGS_POSITION}
    writing = {
        name: traffic.wrap_transfer(name, select.POLLOUT, SENT) for name in ("send", "sendall", "sendto", "sendmsg")
    }
    connecting = {name: traffic.wrap_connect(name) for name in ("connect", "connect_ex")}
    closing = {name: traffic.wrap_close(name) for name in ("_real_close", "detach", "shutdown")}
    by_name = reading | writing | connecting | closing
    methods: dict[tuple[object, str], object] = {(socket.socket, name): method for name, method in by_name.items()}
    return {**methods, (selectors.EpollSelector, "select"): select_until}
