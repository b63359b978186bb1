"""Locks and timed waits on them in virtual time."""

from __future__ import annotations

import threading
from _thread import LockType, allocate_lock
from collections import deque

from .program_clock import ProgramClock


class _Waiter:
    """A thread that waits for a lock. Its own real lock is released when the wait is over."""

    def __init__(self) -> None:
        self.released: LockType = allocate_lock()
        self.released.acquire()
        self.has_lock = False


class VirtualLock:
    """Replacement for `threading.Lock` whose timeouts are in virtual time."""

    #: The clock of the process; set by `virtual_locks`.
    clock: ProgramClock

    def __init__(self) -> None:
        self._mutex = allocate_lock()
        self._is_held = False
        self._queue: deque[_Waiter] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock; return whether it was acquired, at once or before the timeout."""
        with self._mutex:
            if not self._is_held:
                self._is_held = True
                return True
            if not blocking or timeout == 0:
                return False
            waiter = _Waiter()
            self._queue.append(waiter)
        if timeout < 0:
            waiter.released.acquire()
        else:
            with self.clock.timer(timeout, lambda: self._time_out(waiter)):
                waiter.released.acquire()
        return waiter.has_lock

    def _time_out(self, waiter: _Waiter) -> None:
        with self._mutex:
            if waiter in self._queue:
                self._queue.remove(waiter)
                waiter.released.release()

    def release(self) -> None:
        """Release the lock: hand it to the first waiter, if any."""
        with self._mutex:
            if not self._is_held:
                raise RuntimeError("release unlocked lock")
            if self._queue:
                waiter = self._queue.popleft()
                waiter.has_lock = True
                waiter.released.release()
            else:
                self._is_held = False

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._is_held

    def _at_fork_reinit(self) -> None:
        """Reset the lock in a forked child (called by `threading`)."""
        VirtualLock.__init__(self)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def virtual_locks(clock: ProgramClock) -> dict[tuple[object, str], object]:
    """Return the replacements for Python's locks; conditions, events and queues are built on them."""
    VirtualLock.clock = clock
    return {(threading, "Lock"): VirtualLock, (threading, "_allocate_lock"): VirtualLock}
