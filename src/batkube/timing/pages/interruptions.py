"""Interrupts a program at random moments of real time, to test that results do not depend on its speed."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import threading

#: The longest pause between two interruptions and the longest interruption, in real seconds.
_BETWEEN_S, _LENGTH_S = 0.02, 0.005
#: The longest head start, in real seconds.
_HEAD_START_S = 0.003


class Interruptions:
    """A thread that stops and continues the processes of a program by SIGSTOP and SIGCONT (signal(7))."""

    def __init__(self, group: int, chance: random.Random) -> None:
        """`group` is the process group of the program; `chance` draws the times and lengths."""
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
        """Stop interrupting the program."""
        self._stopped.set()
        self._thread.join()


class HeadStart:
    """Delays time grants, so that a program woken by a late signal runs for a moment before its grant."""

    def __init__(self, chance: random.Random) -> None:
        """`chance` draws the length of each delay."""
        self._chance = chance

    def wait(self) -> None:
        """Wait for a random time."""
        select.select((), (), (), self._chance.uniform(0, _HEAD_START_S))
