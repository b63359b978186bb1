"""What to say of a name that is not known: the nearest one that is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from batkube.kernel.errors import InputError

#: So many names are listed when none is near.
_MAX_LISTED = 30


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the remedy for a wrong name: the one that was probably meant, or else all there are."""
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    listed = ", ".join(names[:_MAX_LISTED]) + (", …" if len(names) > _MAX_LISTED else "")
    return f"known: {listed}" if names else "there are none"


def check_names(names: Iterable[object], known: Iterable[str], source: Path | str, at: str, what: str) -> None:
    """Refuse the first of the names that is not `known`; `what` says what they are names of."""
    choices = list(known)
    for name in names:
        if name not in choices:
            place = f"{at}.{name}" if at else str(name)
            raise InputError(source, at=place, problem=f"is not {what}", remedy=suggestion(name, choices))
