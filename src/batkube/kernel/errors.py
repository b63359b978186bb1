"""Every error that Batkube raises on purpose.

    BatkubeError
    ├── InputError      a file or an option of the user is wrong; exit code 2
    ├── RunFailed       the scheduler crashed, stalled or left jobs behind; exit code 1
    └── Bug             an invariant of Batkube is broken; stop at once and report the context

The class decides how the command line handles the error. An `InputError` is one message with the file, the place in it,
the problem and the remedy. A `Bug` is never caught in order to continue, unless the user asks for that (`serve
--keep-going`). Any other unexpected exception is a bug, too. Each layer it passes adds a note (`add_note`) with its
context: the change, the request, the appointment.
"""

from __future__ import annotations

import sys
from pathlib import Path


class BatkubeError(Exception):
    """Base class of input errors, failed runs and bugs."""


class InputError(BatkubeError):
    """A file or option of the user cannot be used."""

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
    """The run could not be completed; results computed so far are kept."""


class Bug(BatkubeError):
    """An invariant of Batkube is broken. The message contains the context that a bug report needs."""

    def __init__(self, message: str, origin: Exception | None = None) -> None:
        """`origin` is the exception that this bug wraps (`as_bug`), if any."""
        super().__init__(message)
        self.origin = origin or self


def has_context(error: BaseException) -> bool:
    """Return whether a layer added what it was doing: the error was raised by a running cluster, not by an input."""
    return bool(getattr(error, "__notes__", ()))


def as_bug(error: Exception, *more: str) -> Bug:
    """Wrap `error` in a Bug whose message contains the notes of the layers it passed, then `more`."""
    if isinstance(error, Bug) and error.origin is not error:
        return Bug("\n  ".join([str(error), *more]), error.origin)
    text = str(error) if isinstance(error, Bug) else f"{type(error).__name__}: {error}"
    return Bug("\n  ".join([f"a bug in Batkube: {text}", *getattr(error, "__notes__", ()), *more]), error)


def nesting_limit() -> str:
    """Return the nesting limit of inputs as text for a message: Python's recursion limit."""
    return f"at most about {sys.getrecursionlimit():,} levels are supported"
