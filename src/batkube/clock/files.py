"""Waiting for files and sockets, and counting what goes to and fro between the program and the run."""

from __future__ import annotations

import os
import select
import selectors
import socket
from collections.abc import Callable
from typing import Any

from .keeping import CONNECTS, ELSEWHERE, GOT, SENT, WROTE, ProgramClock

_INTERNET = (socket.AF_INET, socket.AF_INET6)


class Traffic:
    """The program's connections."""

    def __init__(self, clock: ProgramClock) -> None:
        self._clock = clock
        self._page = clock.page
        #: Those to the run, by their file.
        self._to_run: set[int] = set()

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
            if file in self._to_run and place == SENT:
                self._page.add(WROTE)
            seconds = sock.gettimeout()
            if seconds and not self.await_file(file, events, seconds):
                raise TimeoutError("timed out")
            result = real(sock, *arguments, **options)
            if file in self._to_run:
                self._page.add(place, _bytes_moved(result, arguments))
            return result

        return method

    def connecting(self, name: str) -> Callable[..., Any]:
        """Return a method of sockets that begins a connection."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, address: Any) -> Any:
            if sock.family in _INTERNET and sock.type == socket.SOCK_STREAM:
                if address[1] == self._page.port and (address[0] == "localhost" or address[0].startswith("127.")):
                    self._page.add(WROTE)
                    self._page.add(CONNECTS)
                    self._to_run.add(sock.fileno())
                else:
                    self._page.add(ELSEWHERE)
            return real(sock, address)

        return method

    def closing(self, name: str) -> Callable[..., Any]:
        """Return a method of sockets that ends a connection, or its own side of one."""
        real = getattr(socket.socket, name)

        def method(sock: socket.socket, *arguments: Any) -> Any:
            if sock.fileno() in self._to_run:
                self._page.add(WROTE)
                if name != "shutdown":
                    self._to_run.discard(sock.fileno())
            return real(sock, *arguments)

        return method


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
        if timeout is not None and timeout > 0:
            traffic.await_file(self.fileno(), select.POLLIN, timeout)
            timeout = 0
        return real_select(self, timeout)

    reading = {name: traffic.moving(name, select.POLLIN, GOT) for name in ("recv", "recv_into", "recvfrom", "recvmsg")}
    writing = {name: traffic.moving(name, select.POLLOUT, SENT) for name in ("send", "sendall", "sendto", "sendmsg")}
    begin = {name: traffic.connecting(name) for name in ("connect", "connect_ex")}
    end = {name: traffic.closing(name) for name in ("_real_close", "detach", "shutdown")}
    all_of_them = reading | writing | begin | end
    methods: dict[tuple[object, str], object] = {(socket.socket, name): method for name, method in all_of_them.items()}
    return {**methods, (selectors.EpollSelector, "select"): select_until}
