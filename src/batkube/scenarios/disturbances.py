"""What can disturb a program in real time, to prove that results do not depend on it (`run --disturb`)."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from pathlib import Path

from batkube.kernel.errors import InputError


class Disturbance(enum.StrEnum):
    """Something that happens in real time and must not change a result."""

    CUTS = "cuts"  # each piece that goes to a program arrives in two segments
    PAUSES = "pauses"  # … the second some milliseconds after the first
    SLOW_SERVER = "slow-server"  # each piece goes out some milliseconds late
    SLOW_PROGRAM = "slow-program"  # the program is stopped for some milliseconds now and then
    WAKE_UPS = "wake-ups"  # the program wakes as soon as its clock is moved, before it is told to go on


def parse_disturbances(values: Iterable[object], *, can_disturb: bool, source: str | Path) -> tuple[Disturbance, ...]:
    """Return the disturbances named by texts such as `cuts,pauses`, each once.

    `can_disturb` says whether the run has a program on exact virtual time.
    """
    words = [word.strip() for value in values for word in str(value).split(",")]
    known = {one.value: one for one in Disturbance}
    for word in words:
        if word not in known:
            remedy = f"some of {', '.join(known)}"
            raise InputError(source, at="disturb", problem=f"{word!r} is not a disturbance", remedy=remedy)
    if words and not can_disturb:
        raise InputError(
            source,
            at="disturb",
            problem="only a program on exact virtual time can be disturbed without changing results",
            remedy="use a real scheduler and --time exact, or leave it out",
        )
    return tuple(known[word] for word in dict.fromkeys(words))
