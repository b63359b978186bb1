"""What a shell knows while a script goes on: its variables and options, the time, what it printed, its background."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from batkube.execution.scripts.environment import ContainerFiles, Environment
from batkube.execution.scripts.lexer import UnsupportedScript
from batkube.kernel.instants import Duration

#: Words that nobody knows are None.
Arguments = list[str | None]

#: So many commands of a script are followed, and so long a text may become.
_MAX_STEPS = 20_000
_MAX_TEXT_LENGTH = 65_536


class BackgroundJob(NamedTuple):
    """What a command in the background came to; `end` is None when it never ends."""

    end: Duration | None
    status: int | None


@dataclass(slots=True)
class ShellContext:
    """What a subshell has of its own: it begins as its parent's, and is lost at its end."""

    variables: dict[str, str | None]
    errexit: bool = False
    nounset: bool = False
    background: list[BackgroundJob] = field(default_factory=list)
    #: How many loops the present command stands in.
    loop_depth: int = 0


class ScriptState:
    """The state of a script that is followed."""

    def __init__(self, start: Environment, disk: ContainerFiles) -> None:
        self.context = ShellContext(dict(start.variables))
        self.arguments = start.arguments
        self.knows_all_variables = start.is_complete
        self.files = disk
        self.time = Duration(0)
        #: The status of the last command; None if nobody knows.
        self.status: int | None = 0
        #: What was printed, where somebody listens; None in it for what nobody knows.
        self.output: list[str | None] | None = None
        #: A program that nobody knows, the first of them; and whether one of them may take any time.
        self.unknown_program = ""
        #: The last program of which nobody knows how it ended.
        self.uncertain_program = ""
        self.has_unknown_length = False
        self.has_slept = False
        #: How often it was asked whether there is a file: the answer may be another one later.
        self.file_query_count = 0
        #: How many conditions the present command stands in: no error in them ends a script.
        self.condition_depth = 0
        self._step_count = 0

    @contextlib.contextmanager
    def subshell(self) -> Iterator[None]:
        """Let the block be a subshell."""
        before = self.context
        self.context = replace(before, variables=dict(before.variables), background=[], loop_depth=0)
        try:
            yield
        finally:
            self.context = before

    def count_step(self) -> None:
        """Count one more command."""
        self._step_count += 1
        if self._step_count > _MAX_STEPS:
            raise UnsupportedScript(f"it has more than {_MAX_STEPS:,} commands to follow")

    def fingerprint(self) -> tuple[object, ...]:
        """Return all that the next round of a loop can depend on."""
        own = self.context
        return (dict(own.variables), len(own.background), own.errexit, self.file_query_count, self.status)

    def assign(self, name: str, value: str | None) -> None:
        """Set a variable."""
        if name == "IFS":
            raise UnsupportedScript("IFS is set, which changes how words are split")
        if value is not None and len(value) > _MAX_TEXT_LENGTH:
            raise UnsupportedScript(f"a text has more than {_MAX_TEXT_LENGTH:,} characters")
        self.context.variables[name] = value

    def write(self, text: str | None) -> None:
        """Print, for whoever listens."""
        if self.output is not None:
            self.output.append(text)

    def run_unknown_program(self, name: str) -> None:
        """Let a program run of which nobody knows what it does."""
        self.unknown_program = self.unknown_program or name
        self.has_unknown_length = True
        self.mark_uncertain(name)
        self.write(None)

    def mark_uncertain(self, name: str) -> None:
        """Say that nobody knows whether a program succeeded."""
        self.uncertain_program, self.status = name, None

    def has_file(self, path: str, *, folder: bool = False) -> bool | None:
        """Return whether there is a file, now."""
        self.file_query_count += 1
        if self.has_unknown_length:
            return None  # who knows what that program wrote
        return self.files.has_folder(path, self.time) if folder else self.files.has(path, self.time)
