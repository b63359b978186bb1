"""Interrupts a program in real time, to show that a run does not depend on when exactly it goes on."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import threading

#: The longest time, in real seconds, between two interruptions, and of one.
_BETWEEN_S, _LENGTH_S = 0.02, 0.005
#: The longest head start, in real seconds.
_HEAD_START_S = 0.003


class Interruptions:
    """A thread that stops and continues the processes of a program (signal(7): SIGSTOP, SIGCONT)."""

    def __init__(self, group: int, chance: random.Random) -> None:
        """`group` is the process group of the program; `chance` draws when and for how long."""
        self._group = group
        self._chance = chance
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._interrupt, name="interruptions", daemon=True)
        self._thread.start()

    def _interrupt(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            while not self._stopped.wait(self._chance.uniform(0, _BETWEEN_S)):
                os.killpg(self._group, signal.SIGSTOP)
                self._stopped.wait(self._chance.uniform(0, _LENGTH_S))
                os.killpg(self._group, signal.SIGCONT)

    def stop(self) -> None:
        """Leave the program alone from now on."""
        self._stopped.set()
        self._thread.join()


class HeadStart:
    """The moment that a program is at work by itself, woken by a late signal, before it is granted time."""

    def __init__(self, chance: random.Random) -> None:
        """`chance` draws how long the moment is."""
        self._chance = chance

    def wait(self) -> None:
        """Wait for the moment to pass."""
        select.select((), (), (), self._chance.uniform(0, _HEAD_START_S))
