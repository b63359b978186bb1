"""The state of a shell during a script: variables, options, time, output and background jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from batkube.execution.scripts.environment import ContainerFiles, Environment
from batkube.execution.scripts.lexer import UnsupportedScript
from batkube.kernel.instants import Duration

#: The arguments of a command; unknown words are None.
Arguments = list[str | None]

#: The maximum number of executed commands, and of characters in a value.
_MAX_STEPS = 20_000
_MAX_TEXT_LENGTH = 65_536


class BackgroundJob(NamedTuple):
    """A finished background command; `end` is None if it never ends."""

    end: Duration | None
    status: int | None


@dataclass(slots=True)
class ShellContext:
    """The part of the state that a subshell copies from its parent, and that is discarded at its end."""

    variables: dict[str, str | None]
    errexit: bool = False
    nounset: bool = False
    background: list[BackgroundJob] = field(default_factory=list)
    #: The number of loops around the current command.
    loop_depth: int = 0


class ScriptState:
    """The state of a script that is interpreted."""

    def __init__(self, start: Environment, disk: ContainerFiles) -> None:
        self.context = ShellContext(dict(start.variables))
        self.arguments = start.arguments
        self.knows_all_variables = start.is_complete
        self.files = disk
        self.time = Duration(0)
        #: The exit status of the last command; None if unknown.
        self.status: int | None = 0
        #: The captured output, within a command substitution; None in it for unknown output.
        self.output: list[str | None] | None = None
        #: The first unknown program, or "".
        self.unknown_program = ""
        #: The last program with an unknown exit status.
        self.uncertain_program = ""
        #: Whether an unknown program was run, which may take any time.
        self.has_unknown_length = False
        self.has_slept = False
        #: The number of checks for the existence of a file, which may have another result later.
        self.file_query_count = 0
        #: The number of conditions around the current command; errexit does not apply in them.
        self.condition_depth = 0
        self._step_count = 0

    @contextlib.contextmanager
    def subshell(self) -> Iterator[None]:
        """Execute the block in a subshell."""
        before = self.context
        self.context = replace(before, variables=dict(before.variables), background=[], loop_depth=0)
        try:
            yield
        finally:
            self.context = before

    def count_step(self) -> None:
        """Count a command; raise UnsupportedScript beyond the limit."""
        self._step_count += 1
        if self._step_count > _MAX_STEPS:
            raise UnsupportedScript(f"it executes more than {_MAX_STEPS:,} commands")

    def fingerprint(self) -> tuple[object, ...]:
        """Return all state on which the next iteration of a loop can depend."""
        context = self.context
        return (dict(context.variables), len(context.background), context.errexit, self.file_query_count, self.status)

    def assign(self, name: str, value: str | None) -> None:
        """Set a variable."""
        if name == "IFS":
            raise UnsupportedScript("setting IFS is not supported")
        if value is not None and len(value) > _MAX_TEXT_LENGTH:
            raise UnsupportedScript(f"a text has more than {_MAX_TEXT_LENGTH:,} characters")
        self.context.variables[name] = value

    def write(self, text: str | None) -> None:
        """Write to the captured output, if any."""
        if self.output is not None:
            self.output.append(text)

    def run_unknown_program(self, name: str) -> None:
        """Run an unknown program: it takes no time, and its output and exit status are unknown."""
        self.unknown_program = self.unknown_program or name
        self.has_unknown_length = True
        self.mark_uncertain(name)
        self.write(None)

    def mark_uncertain(self, name: str) -> None:
        """Set the exit status to unknown, because of a program."""
        self.uncertain_program, self.status = name, None

    def has_file(self, path: str, *, folder: bool = False) -> bool | None:
        """Return whether a file or folder exists now; None if unknown."""
        self.file_query_count += 1
        if self.has_unknown_length:
            return None  # the unknown program may have written it
        return self.files.has_folder(path, self.time) if folder else self.files.has(path, self.time)
