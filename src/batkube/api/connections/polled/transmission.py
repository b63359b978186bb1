"""Send pieces to the kernel: whole, or with disturbances that must not change the results of a run.

`batkube run --disturb` selects the disturbances. Their random numbers do not come from the run's streams.
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
        """Send a piece and return how many bytes the kernel accepted. Raises OSError if the connection is broken."""


class WholePieces:
    """Sends each piece with one call."""

    def send(self, sock: socket.socket, piece: bytes) -> int:
        """Send a piece and return how many bytes the kernel accepted. Raises OSError if the connection is broken."""
        try:
            return sock.send(piece)
        except BlockingIOError:
            return 0


@dataclass(frozen=True, slots=True)
class DisturbedPieces:
    """Sends pieces late, or in two segments split at a random position, optionally with a pause between them."""

    rng: random.Random
    late: bool = False
    cut: bool = False
    pause: bool = False

    def send(self, sock: socket.socket, piece: bytes) -> int:
        """Send a piece and return how many bytes the kernel accepted. Raises OSError if the connection is broken."""
        if self.late:
            self._delay()
        if not (self.cut or self.pause) or len(piece) < 2:
            return WholePieces().send(sock, piece)
        position = self.rng.randrange(1, len(piece))
        count = WholePieces().send(sock, piece[:position])
        if self.pause:
            self._delay()
        return count if count < position else count + WholePieces().send(sock, piece[position:])

    def _delay(self) -> None:
        select.select((), (), (), self.rng.uniform(0, _MAX_DELAY_S))
