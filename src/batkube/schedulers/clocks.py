"""Sources of a program's time."""

from __future__ import annotations

import enum


class ClockKind(enum.StrEnum):
    """How a program reads the time."""

    GO = "go"  # the Go runtime, built with the overlay
    PRELOAD = "preload"  # a C library in LD_PRELOAD
    PYTHON = "python"  # the package `batkube.clock`
    REAL = "real"  # the machine's clock, which the run does not control


def split_clock(text: str) -> tuple[ClockKind | None, str]:
    """Split `CLOCK:COMMAND`; the clock is None if the text has none."""
    name, colon, command = text.partition(":")
    if colon and name in list(ClockKind):
        return ClockKind(name), command.strip()
    return None, text
