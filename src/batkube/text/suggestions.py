"""Suggestions for unknown names: the closest valid one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from batkube.kernel.errors import InputError

#: Maximum number of names in a list, if none is close.
_MAX_LISTED = 30


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the closest known name, or a list of all."""
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    listed = ", ".join(names[:_MAX_LISTED]) + (", …" if len(names) > _MAX_LISTED else "")
    return f"known: {listed}" if names else "there are none"


def check_names(names: Iterable[object], known: Iterable[str], source: Path | str, at: str, what: str) -> None:
    """Raise InputError for the first name that is not in `known`; `what` describes the expected names."""
    choices = list(known)
    for name in names:
        if name not in choices:
            place = f"{at}.{name}" if at else str(name)
            raise InputError(source, at=place, problem=f"is not {what}", remedy=suggestion(name, choices))
