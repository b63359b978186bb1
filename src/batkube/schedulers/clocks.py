"""How a program comes by the run's clock."""

from __future__ import annotations

import enum


class ClockKind(enum.StrEnum):
    """What gives a program its time."""

    GO = "go"  # its own runtime, built with the overlay
    PRELOAD = "preload"  # a library in C that is loaded before the C library
    PYTHON = "python"  # the module `batkube.clock`
    REAL = "real"  # the machine's clock, which no run moves


def split_clock(text: str) -> tuple[ClockKind | None, str]:
    """Return the two parts of `CLOCK:COMMAND`; no clock when there is none."""
    name, colon, command = text.partition(":")
    if colon and name in list(ClockKind):
        return ClockKind(name), command.strip()
    return None, text
