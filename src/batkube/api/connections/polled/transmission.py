"""How a piece is handed to the kernel: whole, or disturbed in order to show that this changes nothing.

`batkube run --disturb` chooses the disturbances. What they draw at random is not the run's: it must not matter.
"""

from __future__ import annotations

import random
import select
import socket
from dataclasses import dataclass
from typing import Protocol

#: The longest delay, in real time.
_MAX_DELAY_S = 0.003


class Transmission(Protocol):
    """A way to send a piece on a non-blocking connection."""

    def send(self, sock: socket.socket, piece: bytes) -> int:
        """Return how many bytes the kernel has taken. Raises OSError if the connection is broken."""


class WholePieces:
    """Sends each piece with one call."""

    def send(self, sock: socket.socket, piece: bytes) -> int:
        """Return how many bytes the kernel has taken. Raises OSError if the connection is broken."""
        try:
            return sock.send(piece)
        except BlockingIOError:
            return 0


@dataclass(frozen=True, slots=True)
class DisturbedPieces:
    """Sends pieces late, or in two segments that are cut at a random place, or the second one late."""

    rng: random.Random
    late: bool = False
    cut: bool = False
    pause: bool = False

    def send(self, sock: socket.socket, piece: bytes) -> int:
        """Return how many bytes the kernel has taken. Raises OSError if the connection is broken."""
        if self.late:
            self._delay()
        if not (self.cut or self.pause) or len(piece) < 2:
            return WholePieces().send(sock, piece)
        place = self.rng.randrange(1, len(piece))
        count = WholePieces().send(sock, piece[:place])
        if self.pause:
            self._delay()
        return count if count < place else count + WholePieces().send(sock, piece[place:])

    def _delay(self) -> None:
        select.select((), (), (), self.rng.uniform(0, _MAX_DELAY_S))
