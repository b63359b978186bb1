"""How a script goes: how long it takes, and with which exit code it ends.

A value or the status of a program that nobody knows may pass by, but nothing may depend on it: a script that decides by
it is not understood. Programs that are not known take no time, which is a guess, and said to be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from batkube.execution.scripts.conditions import holds
from batkube.execution.scripts.sums import integer
from batkube.execution.scripts.syntax import (
    Branching,
    Chain,
    Each,
    Negation,
    Sequence,
    ShellCommand,
    ShellLoop,
    Statement,
    parse,
)
from batkube.execution.scripts.values import Values
from batkube.execution.scripts.words import NotUnderstood
from batkube.kernel.errors import depth_limit
from batkube.kernel.instants import Duration, duration

#: Loops are followed for so many rounds.
_ROUNDS = 1000
#: Programs that are over as soon as they began, and succeed.
_INSTANT = frozenset(
    (":", "true", "echo", "printf", "date", "hostname", "pwd", "env", "export", "set", "trap", "unset")
)
_INSTANT |= frozenset(("cd", "umask", "whoami", "id", "uname", "local", "readonly"))


class ScriptOutcome(NamedTuple):
    """How a script goes; `length` is None when it never ends by itself."""

    length: Duration | None
    exit_code: int = 0
    #: A program of which nothing is known, and that was taken to take no time; "" if there is none.
    guess: str = ""


class Disk(Protocol):
    """The files that a script sees. Paths of which nobody knows whether there is a file are unknown (None)."""

    def has(self, path: str, after: Duration) -> bool | None:
        """Return whether there is a file, so long after the script began."""

    def write(self, path: str, after: Duration) -> None:
        """Make a file, so long after the script began."""

    def remove(self, path: str, after: Duration) -> None:
        """Remove a file."""


class _Exit(Exception):
    """The script ends."""


class _Endless(Exception):
    """The script goes on for ever."""


class _Leap(Exception):
    """A loop is left, or begins its next round."""

    def __init__(self, is_over: bool) -> None:
        self.is_over = is_over


def run_script(
    text: str, variables: Mapping[str, str | None], disk: Disk, *, stops_at_errors: bool = False
) -> ScriptOutcome:
    """Return how a script goes that sees these variables (None: nobody knows the value) and files."""
    return _Run(variables, disk, stops_at_errors).outcome(parse(text))


def run_program(words: list[str], variables: Mapping[str, str | None], disk: Disk) -> ScriptOutcome:
    """Return how one program with its arguments goes."""
    run = _Run(variables, disk, False)
    return run.whole(lambda: run.program(list(words)))


class _Run:
    def __init__(self, variables: Mapping[str, str | None], disk: Disk, stops_at_errors: bool) -> None:
        self._values = Values(variables)
        self._disk = disk
        self._stops_at_errors = stops_at_errors
        self._time = Duration(0)
        #: When what runs in the background has ended; None if never.
        self._background: Duration | None = Duration(0)
        #: A program that nobody knows, or whose end nobody knows; and whether one of them may take any time.
        self._guess = ""
        self._is_of_unknown_length = False
        self._has_slept = False
        #: How often it was asked whether there is a file: the answer may be another one later.
        self._questions = 0
        #: How many conditions the present command stands in: no error in them ends a script.
        self._conditions = 0

    def outcome(self, script: Sequence) -> ScriptOutcome:
        """Return how a script goes."""
        return self.whole(lambda: self._node(script))

    def whole(self, act: Callable[[], None]) -> ScriptOutcome:
        """Return how it goes, when `act` is all there is."""
        try:
            act()
        except _Exit:
            pass
        except _Endless:
            return ScriptOutcome(None, 0, self._guess)
        except RecursionError:
            raise NotUnderstood(f"the script is nested too deeply: {depth_limit()}") from None
        if self._is_of_unknown_length and not self._has_slept:
            raise NotUnderstood(f"nobody knows what `{self._guess}` does")
        return ScriptOutcome(self._time, self._values.status or 0, self._guess)

    def _node(self, node: Statement) -> None:
        match node:
            case Sequence():
                for one in node.nodes:
                    self._node(one)
            case Chain():
                self._conditionally(node.first)
                if self._known_status() == (node.operator == "&&"):
                    self._node(node.second)
            case Negation():
                self._conditionally(node.body)
                self._values.status = int(self._known_status())
            case Branching():
                self._condition(node)
            case ShellLoop():
                self._loop(node)
            case Each():
                for word in node.words:
                    for text in self._values.split(word):
                        self._values.variables[node.name] = text
                        if self._is_over_after(node.body):
                            return
            case ShellCommand():
                self._command(node)

    def _conditionally(self, node: Statement) -> None:
        self._conditions += 1
        self._node(node)
        self._conditions -= 1

    def _known_status(self) -> bool:
        """Return whether the last command succeeded, which something depends on."""
        if self._values.status is None:
            raise NotUnderstood(f"what happens depends on how `{self._guess}` ends")
        return self._values.status == 0

    def _condition(self, node: Branching) -> None:
        for test, body in node.branches:
            self._conditionally(test)
            if self._known_status():
                self._node(body)
                return
        self._values.status = 0
        if node.otherwise is not None:
            self._node(node.otherwise)

    def _loop(self, node: ShellLoop) -> None:
        for _ in range(_ROUNDS):
            before = dict(self._values.variables), self._background, self._questions
            self._conditionally(node.condition)
            if self._known_status() == node.until:
                self._values.status = 0
                return
            if self._is_over_after(node.body):
                return
            if before == (self._values.variables, self._background, self._questions):
                raise _Endless  # the next round will be as this one was
        raise NotUnderstood("a loop does not end soon, and what it waits for may come")

    def _is_over_after(self, body: Sequence) -> bool:
        """Go through the body of a loop; return whether that was its last round."""
        try:
            self._node(body)
        except _Leap as leap:
            return leap.is_over
        return False

    # Simple commands

    def _command(self, node: ShellCommand) -> None:
        for name, word in node.assignments:
            self._values.variables[name] = self._values.text(word)
        for target in node.writes:
            path = self._values.text(target)
            if path is not None and not path.startswith("/dev/"):
                self._disk.write(path, self._time)
        words = [text for word in node.words for text in self._values.split(word)]
        if not words:
            self._values.status = 0
            return
        if node.in_background:
            self._in_background(words)
            return
        self.program(words)
        if self._values.status and self._stops_at_errors and not self._conditions:
            raise _Exit

    def _in_background(self, words: list[str | None]) -> None:
        start = self._time
        try:
            self.program(words)
            if self._background is not None:
                self._background = max(self._background, self._time)
        except _Endless:
            self._background = None
        self._time, self._values.status = start, 0

    def program(self, words: list[str | None]) -> None:
        """Let one program run; words that nobody knows are None."""
        name, arguments = (words[0] or "").rpartition("/")[2], words[1:]
        if name == "exec" and arguments:
            self.program(arguments)
            raise _Exit
        known = _PROGRAMS.get(name)
        if known is not None:
            known(self, arguments)
        elif name in _INSTANT:
            if name == "set" and any(_sets_errexit(one) for one in arguments):
                self._stops_at_errors = True
            self._values.status = 0
        else:
            self._guess = self._guess or name or "a program whose name is not known"
            self._is_of_unknown_length, self._values.status = True, None

    def _exit(self, arguments: list[str | None]) -> None:
        if arguments:
            self._values.status = integer(arguments[0], "exit") % 256
        raise _Exit

    def _sleep(self, arguments: list[str | None]) -> None:
        self._has_slept, self._values.status = True, 0
        try:
            lengths = [duration(one) if one is not None else None for one in arguments]
        except ValueError:
            if arguments in (["infinity"], ["inf"]):
                raise _Endless from None
            raise NotUnderstood(f"`sleep {arguments[0]}` is not a length") from None
        if None in lengths:
            raise NotUnderstood("nobody knows for how long it sleeps")
        self._time = Duration(self._time + sum(length for length in lengths if length is not None))

    def _wait(self, arguments: list[str | None]) -> None:
        if self._background is None:
            raise _Endless
        self._time, self._values.status = max(self._time, self._background), 0

    def _tail(self, arguments: list[str | None]) -> None:
        if any(one in ("-f", "-F", "--follow") for one in arguments):
            raise _Endless
        self._read(arguments)

    def _pause(self, arguments: list[str | None]) -> None:
        raise _Endless

    def _fail(self, arguments: list[str | None]) -> None:
        self._values.status = 1

    def _leap(self, is_over: bool) -> None:
        raise _Leap(is_over)

    def _touch(self, arguments: list[str | None]) -> None:
        for path in _paths(arguments):
            self._disk.write(path, self._time)
        self._values.status = 0

    def _remove(self, arguments: list[str | None]) -> None:
        for path in _paths(arguments):
            self._disk.remove(path, self._time)
        self._values.status = 0

    def _read(self, arguments: list[str | None]) -> None:
        there = [self._has_file(path) for path in _paths(arguments)]
        self._values.status = 1 if False in there else None if None in there else 0
        if self._values.status is None:
            self._guess = self._guess or "cat"

    def _test(self, arguments: list[str | None]) -> None:
        while arguments and arguments[-1] in ("]", "]]"):
            arguments = arguments[:-1]
        self._values.status = 0 if holds(arguments, self._has_file) else 1

    def _has_file(self, path: str) -> bool | None:
        self._questions += 1
        return self._disk.has(path, self._time)


def _paths(arguments: list[str | None]) -> list[str]:
    return [one for one in arguments if one is not None and not one.startswith("-")]


def _sets_errexit(argument: str | None) -> bool:
    return argument == "errexit" or (argument is not None and re.fullmatch(r"-[a-z]*e[a-z]*", argument) is not None)


_PROGRAMS: dict[str, Callable[[_Run, list[str | None]], None]] = {
    "exit": _Run._exit,
    "return": _Run._exit,
    "sleep": _Run._sleep,
    "wait": _Run._wait,
    "tail": _Run._tail,
    "pause": _Run._pause,
    "false": _Run._fail,
    "break": lambda run, _: run._leap(True),
    "continue": lambda run, _: run._leap(False),
    "touch": _Run._touch,
    "mkdir": _Run._touch,
    "rm": _Run._remove,
    "cat": _Run._read,
    "ls": _Run._read,
    "test": _Run._test,
    "[": _Run._test,
    "[[": _Run._test,
}
