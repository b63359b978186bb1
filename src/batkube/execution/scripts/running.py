"""How a script goes: how long it takes, and with which exit code it ends.

A value or the status of a program that nobody knows may pass by, but nothing may depend on it: a script that decides by
it is not understood. Programs that are not known take no time, which is a guess, and said to be one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from batkube.execution.scripts.programs import (
    SPECIAL,
    LoopLeap,
    Programs,
    ScriptEndless,
    ScriptExit,
    set_options,
)
from batkube.execution.scripts.state import Arguments, BackgroundJob, ScriptState
from batkube.execution.scripts.surroundings import Environment, Mounts
from batkube.execution.scripts.syntax import (
    Branching,
    Chain,
    Each,
    Negation,
    Sequence,
    ShellCommand,
    ShellLoop,
    Statement,
    Subshell,
    parse,
    plain,
)
from batkube.execution.scripts.values import Values
from batkube.execution.scripts.words import NotUnderstood, Word
from batkube.kernel.errors import depth_limit
from batkube.kernel.instants import Duration


class ScriptOutcome(NamedTuple):
    """How a script goes; `length` is None when it never ends by itself."""

    length: Duration | None
    exit_code: int = 0
    #: A program of which nothing is known, and that was taken to take no time; "" if there is none.
    guess: str = ""


def run_script(text: str, start: Environment, disk: Mounts, options: Arguments | None = None) -> ScriptOutcome:
    """Return how a script goes in a shell that is started so, with these options."""
    state = ScriptState(start, disk)
    set_options(state, options or [])
    shell = _Shell(state)
    return _whole(state, lambda: shell.follow(parse(text)))


def run_program(words: list[str], start: Environment, disk: Mounts) -> ScriptOutcome:
    """Return how one program with its arguments goes, without a shell."""
    state = ScriptState(start, disk)
    return _whole(state, lambda: Programs(state, has_shell=False).run(list(words)))


def _whole(state: ScriptState, act: Callable[[], None]) -> ScriptOutcome:
    """Return how it goes, when `act` is all there is."""
    try:
        act()
    except ScriptExit:
        pass
    except ScriptEndless:
        return ScriptOutcome(None, 0, state.guess)
    except RecursionError:
        raise NotUnderstood(f"the script is nested too deeply: {depth_limit()}") from None
    if state.is_of_unknown_length and not state.has_slept:
        raise NotUnderstood(f"nobody knows what `{state.guess}` does")
    if state.status is None:
        return ScriptOutcome(state.time, 0, state.guess or state.uncertain)
    return ScriptOutcome(state.time, state.status, state.guess)


class _Shell:
    """Follows the statements of a script."""

    def __init__(self, state: ScriptState) -> None:
        self._state = state
        self._programs = Programs(state)
        self._values = Values(state, self._output_of)
        #: The status of the last `$(command)` of the present statement; -1 if there was none.
        self._substituted: int | None = -1

    def follow(self, node: Statement) -> None:
        """Follow one statement."""
        match node:
            case Sequence():
                for one in node.nodes:
                    self.follow(one)
            case Chain():
                self._conditionally(node.first)
                if self._succeeded() == (node.operator == "&&"):
                    self.follow(node.second)
            case Negation():
                self._conditionally(node.body)
                self._state.status = int(self._succeeded())
            case Branching():
                self._branch(node)
            case ShellLoop():
                self._loop(node)
            case Each():
                self._each(node)
            case Subshell(in_background=True):
                self._in_background(node.body)
            case Subshell():
                self._apart(node.body)
                self._stop_at_error()
            case ShellCommand():
                self._command(node)

    def _conditionally(self, node: Statement) -> None:
        self._state.conditions += 1
        try:
            self.follow(node)
        finally:
            self._state.conditions -= 1

    def _succeeded(self) -> bool:
        """Return whether the last command succeeded, which something depends on."""
        if self._state.status is None:
            raise NotUnderstood(f"what happens depends on how `{self._state.uncertain}` ends")
        return self._state.status == 0

    def _stop_at_error(self) -> None:
        state = self._state
        if not state.own.stops_at_errors or state.conditions or state.status == 0:
            return
        if state.status is None:  # it is taken for a success, which is told
            state.guess = state.guess or state.uncertain
            return
        if state.output is not None:
            raise NotUnderstood("an error within $(…) does not end it in all shells")
        raise ScriptExit

    def _branch(self, node: Branching) -> None:
        for test, body in node.branches:
            self._conditionally(test)
            if self._succeeded():
                self.follow(body)
                return
        if node.otherwise is not None:
            self.follow(node.otherwise)
        else:
            self._state.status = 0

    def _loop(self, node: ShellLoop) -> None:
        state = self._state
        last: int | None = 0
        while True:
            before = state.fingerprint()
            self._conditionally(node.condition)
            if self._succeeded() == node.until:
                state.status = last
                return
            if self._is_over_after(node.body):
                return
            last = state.status
            if before == state.fingerprint():
                raise ScriptEndless  # the next round will be as this one was

    def _each(self, node: Each) -> None:
        values = [one for word in node.words for one in self._values.fields(word)]
        if None in values:
            raise NotUnderstood("nobody knows for what a loop is done")
        if not values:
            self._state.status = 0
        for value in values:
            self._state.assign(node.name, value)
            if self._is_over_after(node.body):
                return

    def _is_over_after(self, body: Sequence) -> bool:
        """Go through the body of a loop; return whether that was its last round."""
        self._state.step()
        self._state.own.loops += 1
        try:
            self.follow(body)
        except LoopLeap as leap:
            if leap.levels > 1:
                raise LoopLeap(leap.levels - 1, leap.is_over) from None
            return leap.is_over
        finally:
            self._state.own.loops -= 1
        return False

    # Other shells

    def _apart(self, body: Statement) -> None:
        """Follow what a subshell does."""
        with self._state.apart(), contextlib.suppress(ScriptExit):
            self.follow(body)

    def _in_background(self, body: Statement) -> None:
        """Follow it now; what it does at other times than its parent must not depend on what that one does."""
        state = self._state
        start, questions = state.time, state.questions
        try:
            self._apart(body)
            job = BackgroundJob(state.time, state.status)
        except ScriptEndless:
            job = BackgroundJob(None, 0)
        if state.questions != questions:
            raise NotUnderstood("what runs in the background looks at files, which may change meanwhile")
        state.own.background.append(job)
        state.time, state.status = start, 0

    def _output_of(self, text: str) -> str | None:
        """Return what a command prints, None where nobody knows."""
        state = self._state
        before, state.output = state.output, []
        status, conditions = state.status, state.conditions
        script = parse(text)
        # An error in the only command ends it anyway. To some shells an error that is within a condition counts here.
        state.conditions = int(len(script.nodes) == 1 and isinstance(script.nodes[0], ShellCommand))
        try:
            self._apart(script)
            printed = state.output
        finally:
            state.conditions, state.output = conditions, before
        self._substituted, state.status = state.status, status
        if None in printed:
            return None
        return "".join(piece for piece in printed if piece is not None).rstrip("\n")

    # Simple commands

    def _command(self, node: ShellCommand) -> None:
        state = self._state
        state.step()
        self._substituted = -1
        words = self._words(node)
        assigned = [(name, self._values.text(word)) for name, word in node.assignments] if words else []
        if words:
            self._run(node, words, assigned)
        else:
            for name, word in node.assignments:
                state.assign(name, self._values.text(word))
            self._redirect(node)
            state.status = 0 if self._substituted == -1 else self._substituted
        self._stop_at_error()

    def _words(self, node: ShellCommand) -> Arguments:
        if node.words and plain(node.words[0]) == "[[":
            if node.reads or node.writes:
                raise NotUnderstood("`[[` with < or > is not read")
            return [self._values.text(word) for word in node.words]  # nothing is split there
        return [field for word in node.words for field in self._values.fields(word)]

    def _run(self, node: ShellCommand, words: Arguments, assigned: list[tuple[str, str | None]]) -> None:
        """Run a program that sees some variables otherwise than what comes after it."""
        state = self._state
        if assigned and words[0] in SPECIAL:
            raise NotUnderstood(f"an assignment before `{words[0]}` is not kept in all shells")
        output = state.output
        is_sure = self._redirect(node)
        before = state.own.variables
        if assigned:
            state.own.variables = {**before, **dict(assigned)}
        if node.is_silent:
            state.output = None
        try:
            self._programs.run(words)
        finally:
            state.output = output
            if assigned:
                state.own.variables = before
        if not is_sure and state.status == 0:
            state.doubt(words[0] or "")

    def _redirect(self, node: ShellCommand) -> bool:
        """Open the files of a command; return whether that surely works."""
        for word in node.reads:
            path = self._path(word)
            state = self._state
            if path != "/dev/null" and (not state.has_file(path) or state.has_file(path, folder=True)):
                raise NotUnderstood(f"nobody knows whether there is a file {path}")
        is_sure = True
        for word in node.writes:
            path = self._path(word)
            if not path.startswith(("/dev/", "/proc/1/fd/")):
                disk, now = self._state.disk, self._state.time
                is_made = disk.write(path, now)
                if is_made is False or disk.has_folder(path, now):
                    raise NotUnderstood(f"{path} cannot be written")
                is_sure = is_sure and is_made is True
        return is_sure

    def _path(self, word: Word) -> str:
        path = self._values.text(word)
        if path is None:
            raise NotUnderstood("nobody knows which file is read or written")
        return path
