"""What a shell knows while a script goes on: its variables and options, the time, what it printed, its background."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from batkube.execution.scripts.surroundings import Environment, Mounts
from batkube.execution.scripts.words import NotUnderstood
from batkube.kernel.instants import Duration

#: Words that nobody knows are None.
Arguments = list[str | None]

#: So many commands of a script are followed, and so long a text may become.
_STEPS = 20_000
_TEXT = 65_536


class BackgroundJob(NamedTuple):
    """What a command in the background came to; `end` is None when it never ends."""

    end: Duration | None
    status: int | None


@dataclass(slots=True)
class ShellEnvironment:
    """What a subshell has of its own: it begins as its parent's, and is lost at its end."""

    variables: dict[str, str | None]
    stops_at_errors: bool = False
    refuses_unset: bool = False
    background: list[BackgroundJob] = field(default_factory=list)
    #: How many loops the present command stands in.
    loops: int = 0


class ScriptState:
    """The state of a script that is followed."""

    def __init__(self, start: Environment, disk: Mounts) -> None:
        self.own = ShellEnvironment(dict(start.variables))
        self.arguments = start.arguments
        self.knows_all_variables = start.is_complete
        self.disk = disk
        self.time = Duration(0)
        #: The status of the last command; None if nobody knows.
        self.status: int | None = 0
        #: What was printed, where somebody listens; None in it for what nobody knows.
        self.output: list[str | None] | None = None
        #: A program that nobody knows, the first of them; and whether one of them may take any time.
        self.guess = ""
        #: The last program of which nobody knows how it ended.
        self.uncertain = ""
        self.is_of_unknown_length = False
        self.has_slept = False
        #: How often it was asked whether there is a file: the answer may be another one later.
        self.questions = 0
        #: How many conditions the present command stands in: no error in them ends a script.
        self.conditions = 0
        self._steps = 0

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Let the block be a subshell."""
        before = self.own
        self.own = replace(before, variables=dict(before.variables), background=[], loops=0)
        try:
            yield
        finally:
            self.own = before

    def step(self) -> None:
        """Count one more command."""
        self._steps += 1
        if self._steps > _STEPS:
            raise NotUnderstood(f"it has more than {_STEPS:,} commands to follow")

    def fingerprint(self) -> tuple[object, ...]:
        """Return all that the next round of a loop can depend on."""
        own = self.own
        return (dict(own.variables), len(own.background), own.stops_at_errors, self.questions, self.status)

    def assign(self, name: str, value: str | None) -> None:
        """Set a variable."""
        if name == "IFS":
            raise NotUnderstood("IFS is set, which changes how words are split")
        if value is not None and len(value) > _TEXT:
            raise NotUnderstood(f"a text has more than {_TEXT:,} characters")
        self.own.variables[name] = value

    def write(self, text: str | None) -> None:
        """Print, for whoever listens."""
        if self.output is not None:
            self.output.append(text)

    def pass_by(self, name: str) -> None:
        """Let a program run of which nobody knows what it does."""
        self.guess = self.guess or name
        self.is_of_unknown_length = True
        self.doubt(name)
        self.write(None)

    def doubt(self, name: str) -> None:
        """Say that nobody knows whether a program succeeded."""
        self.uncertain, self.status = name, None

    def has_file(self, path: str, *, folder: bool = False) -> bool | None:
        """Return whether there is a file, now."""
        self.questions += 1
        if self.is_of_unknown_length:
            return None  # who knows what that program wrote
        return self.disk.has_folder(path, self.time) if folder else self.disk.has(path, self.time)
