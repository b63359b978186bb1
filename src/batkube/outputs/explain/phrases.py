"""Formats instants, amounts and lists of names for sentences."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.kernel.instants import NANOSECONDS_PER_SECOND
from batkube.kernel.quantities import CPU, MEMORY

#: How many entries of a list are printed; --json has all.
MAX_NAMES = 5


def exact_time(ns: int) -> str:
    """Return an instant, or a length of time, to the microsecond: `1 h 40 min 20.5 s`."""
    whole_s, rest_ns = divmod(abs(ns), NANOSECONDS_PER_SECOND)
    minutes, whole_s = divmod(whole_s, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest_ns // 1000:06d}".rstrip("0").rstrip(".")
    parts = [f"{hours} h"] if hours else []
    parts += [f"{minutes} min"] if minutes else []
    parts += [f"{whole_s}{fraction} s"] if whole_s or fraction or not parts else []
    return f"{'-' if ns < 0 else ''}{' '.join(parts)}"


def end_text(end: int | None) -> str:
    """Return the end of a period; None means that it lasted until the end of the run."""
    return "the end of the run" if end is None else exact_time(end)


def name_list(names: Sequence[str]) -> str:
    """Return `a, b and c`, or the first names and the number of the others."""
    more = len(names) - MAX_NAMES
    if more > 0:
        return f"{', '.join(names[:MAX_NAMES])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "nothing"


def amount_text(resource: str, amount: int) -> str:
    """Return an amount in the usual unit of its resource: cores, GiB, or whole units."""
    if resource == CPU:
        return f"{amount / 1000:g}"
    return f"{amount / 2**30:.4g} GiB" if resource == MEMORY else f"{amount:,}"
