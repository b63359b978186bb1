"""Every error Batkube raises on purpose.

    BatkubeError
    ├── InputError      yours: a file or an option is wrong; exit code 2
    ├── RunFailed       theirs: the scheduler crashed, stalled or left jobs behind; exit code 1
    └── Bug             ours: an invariant broke; stop at once and tell the story

The class says whose fault it is, and so what the command line does about it. An `InputError` is one
message with the file, the place in it, the problem and the remedy. A `Bug` is never caught to carry on,
unless the user asks for that (`serve --keep-going`). Any other exception that nothing foresaw is a bug, too. On
its way up, the layers add notes to it (`add_note`): the change, the request, the appointment. They are its story.
"""

from __future__ import annotations

import sys
from pathlib import Path


class BatkubeError(Exception):
    """What Batkube raises on purpose: catch it for input errors, failed runs and bugs alike."""


class InputError(BatkubeError):
    """Something the user gave cannot be used."""

    def __init__(self, source: str | Path, *, problem: str, at: str | None = None, remedy: str | None = None) -> None:
        self.source = str(source)
        self.at = at
        self.problem = problem
        self.remedy = remedy
        super().__init__(self._message())

    def _message(self) -> str:
        place = f"{self.source}: {self.at}" if self.at else self.source
        hint = f"\n  remedy: {self.remedy}" if self.remedy else ""
        return f"{place}: {self.problem}{hint}"


class RunFailed(BatkubeError):
    """The run could not be completed; what was computed until then is kept."""


class Bug(BatkubeError):
    """An invariant of ours is broken; please report it with the story it tells."""

    def __init__(self, story: str, origin: Exception | None = None) -> None:
        """`origin` is the error that this one reports, if it was not raised as a bug itself (`as_bug`)."""
        super().__init__(story)
        self.origin = origin or self


def has_story(error: BaseException) -> bool:
    """Return whether a layer added what it was doing: the error was raised by a running cluster, not by an input."""
    return bool(getattr(error, "__notes__", ()))


def as_bug(error: Exception, *more: str) -> Bug:
    """Return the bug that `error` is, with its story: the notes of the layers that it passed, then `more`."""
    if isinstance(error, Bug) and error.origin is not error:
        return Bug("\n  ".join([str(error), *more]), error.origin)
    text = str(error) if isinstance(error, Bug) else f"{type(error).__name__}: {error}"
    return Bug("\n  ".join([f"a bug in Batkube: {text}", *getattr(error, "__notes__", ()), *more]), error)


def nesting_limit() -> str:
    """Return how deeply an input may be nested, for a message: as far as Python may call itself."""
    return f"no more than some {sys.getrecursionlimit():,} levels can be followed"
