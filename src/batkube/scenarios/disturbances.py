"""Disturbances of a program in real time, which show that results do not depend on it (`run --disturb`)."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from pathlib import Path

from batkube.kernel.errors import InputError


class Disturbance(enum.StrEnum):
    """A change of real-time behaviour that must not change a result."""

    CUTS = "cuts"  # each chunk sent to a program arrives in two segments
    PAUSES = "pauses"  # the second segment arrives some milliseconds after the first
    SLOW_SERVER = "slow-server"  # each chunk is sent some milliseconds late
    SLOW_PROGRAM = "slow-program"  # the program is stopped for some milliseconds from time to time
    WAKE_UPS = "wake-ups"  # the program wakes up as soon as its clock advances, before it may run


def parse_disturbances(values: Iterable[object], *, can_disturb: bool, source: str | Path) -> tuple[Disturbance, ...]:
    """Parse texts such as `cuts,pauses`, and return each disturbance once.

    `can_disturb` means that the run has a program on exact virtual time.
    """
    names = [name.strip() for value in values for name in str(value).split(",")]
    for name in names:
        if name not in list(Disturbance):
            remedy = f"some of {', '.join(Disturbance)}"
            raise InputError(source, at="disturb", problem=f"{name!r} is not a disturbance", remedy=remedy)
    if names and not can_disturb:
        raise InputError(
            source,
            at="disturb",
            problem="only a program on exact virtual time can be disturbed without changing results",
            remedy="use a real scheduler and --time exact, or omit it",
        )
    return tuple(map(Disturbance, dict.fromkeys(names)))
