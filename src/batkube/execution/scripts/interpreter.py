"""Interprets shell scripts: determines how long a script takes and its exit code, without executing it.

Values and exit statuses of unknown programs may occur, but the script must not depend on them; otherwise it raises
`UnsupportedScript`. An unknown program is assumed to take no time, which is reported as a guess.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from batkube.execution.scripts.environment import ContainerFiles, Environment
from batkube.execution.scripts.expansion import WordExpander
from batkube.execution.scripts.lexer import UnsupportedScript, Word
from batkube.execution.scripts.parser import (
    AndOr,
    CommandList,
    ForLoop,
    IfStatement,
    Negation,
    ShellCommand,
    Statement,
    Subshell,
    WhileLoop,
    parse,
    unquoted_text,
)
from batkube.execution.scripts.programs import (
    SPECIAL,
    EndlessScript,
    LoopJump,
    Programs,
    ScriptExit,
    set_options,
)
from batkube.execution.scripts.state import Arguments, BackgroundJob, ScriptState
from batkube.kernel.errors import nesting_limit
from batkube.kernel.instants import Duration


class ScriptOutcome(NamedTuple):
    """The outcome of a script; `length` is None if it never ends by itself."""

    length: Duration | None
    exit_code: int = 0
    #: An unknown program that was assumed to take no time, or "".
    unknown_program: str = ""


def run_script(text: str, start: Environment, disk: ContainerFiles, options: Arguments | None = None) -> ScriptOutcome:
    """Return the outcome of a script in a shell with this environment and these options."""
    state = ScriptState(start, disk)
    set_options(state, options or [])
    shell = _Shell(state)
    return _run_to_end(state, lambda: shell.execute(parse(text)))


def run_program(words: list[str], start: Environment, disk: ContainerFiles) -> ScriptOutcome:
    """Return the outcome of one program with its arguments, without a shell."""
    state = ScriptState(start, disk)
    return _run_to_end(state, lambda: Programs(state, has_shell=False).run(list(words)))


def _run_to_end(state: ScriptState, execute: Callable[[], None]) -> ScriptOutcome:
    """Execute a script or program and return its outcome."""
    try:
        execute()
    except ScriptExit:
        pass
    except EndlessScript:
        return ScriptOutcome(None, 0, state.unknown_program)
    except RecursionError:
        raise UnsupportedScript(f"the script is nested too deeply: {nesting_limit()}") from None
    if state.has_unknown_length and not state.has_slept:
        raise UnsupportedScript(f"program `{state.unknown_program}` is unknown")
    if state.status is None:
        return ScriptOutcome(state.time, 0, state.unknown_program or state.uncertain_program)
    return ScriptOutcome(state.time, state.status, state.unknown_program)


class _Shell:
    """Executes the statements of a script on a `ScriptState`."""

    def __init__(self, state: ScriptState) -> None:
        self._state = state
        self._programs = Programs(state)
        self._expander = WordExpander(state, self._capture_output)
        #: The status of the last `$(command)` of the current statement; -1 if there was none.
        self._substitution_status: int | None = -1

    def execute(self, node: Statement) -> None:
        """Execute one statement."""
        match node:
            case CommandList():
                for statement in node.nodes:
                    self.execute(statement)
            case AndOr():
                self._execute_condition(node.first)
                if self._succeeded() == (node.operator == "&&"):
                    self.execute(node.second)
            case Negation():
                self._execute_condition(node.body)
                self._state.status = int(self._succeeded())
            case IfStatement():
                self._execute_if(node)
            case WhileLoop():
                self._execute_while(node)
            case ForLoop():
                self._execute_for(node)
            case Subshell(in_background=True):
                self._execute_in_background(node.body)
            case Subshell():
                self._execute_subshell(node.body)
                self._exit_on_error()
            case ShellCommand():
                self._execute_command(node)

    def _execute_condition(self, node: Statement) -> None:
        self._state.condition_depth += 1
        try:
            self.execute(node)
        finally:
            self._state.condition_depth -= 1

    def _succeeded(self) -> bool:
        """Return whether the last command succeeded; raise UnsupportedScript if that is unknown."""
        if self._state.status is None:
            raise UnsupportedScript(f"it depends on the unknown exit status of `{self._state.uncertain_program}`")
        return self._state.status == 0

    def _exit_on_error(self) -> None:
        state = self._state
        if not state.context.errexit or state.condition_depth or state.status == 0:
            return
        if state.status is None:  # assume success, and report the guess
            state.unknown_program = state.unknown_program or state.uncertain_program
            return
        if state.output is not None:
            raise UnsupportedScript("an error within $(…) does not end the script in all shells")
        raise ScriptExit

    def _execute_if(self, node: IfStatement) -> None:
        for test, body in node.branches:
            self._execute_condition(test)
            if self._succeeded():
                self.execute(body)
                return
        if node.otherwise is not None:
            self.execute(node.otherwise)
        else:
            self._state.status = 0

    def _execute_while(self, node: WhileLoop) -> None:
        state = self._state
        last: int | None = 0
        while True:
            before = state.fingerprint()
            self._execute_condition(node.condition)
            if self._succeeded() == node.until:
                state.status = last
                return
            if self._run_loop_body(node.body):
                return
            last = state.status
            if before == state.fingerprint():
                raise EndlessScript  # the state is unchanged, so the loop never ends

    def _execute_for(self, node: ForLoop) -> None:
        values = [value for word in node.words for value in self._expander.fields(word)]
        if None in values:
            raise UnsupportedScript("the values of a `for` loop are unknown")
        if not values:
            self._state.status = 0
        for value in values:
            self._state.assign(node.name, value)
            if self._run_loop_body(node.body):
                return

    def _run_loop_body(self, body: CommandList) -> bool:
        """Execute the body of a loop; return whether `break` ended the loop."""
        self._state.count_step()
        self._state.context.loop_depth += 1
        try:
            self.execute(body)
        except LoopJump as leap:
            if leap.levels > 1:
                raise LoopJump(leap.levels - 1, leap.is_break) from None
            return leap.is_break
        finally:
            self._state.context.loop_depth -= 1
        return False

    # Subshells

    def _execute_subshell(self, body: Statement) -> None:
        """Execute a subshell."""
        with self._state.subshell(), contextlib.suppress(ScriptExit):
            self.execute(body)

    def _execute_in_background(self, body: Statement) -> None:
        """Execute a background command at once; it must not depend on files that its parent may change meanwhile."""
        state = self._state
        start, questions = state.time, state.file_query_count
        try:
            self._execute_subshell(body)
            job = BackgroundJob(state.time, state.status)
        except EndlessScript:
            job = BackgroundJob(None, 0)
        if state.file_query_count != questions:
            raise UnsupportedScript("a background command depends on files, which may change meanwhile")
        state.context.background.append(job)
        state.time, state.status = start, 0

    def _capture_output(self, text: str) -> str | None:
        """Execute a command substitution and return its output, None if unknown."""
        state = self._state
        before, state.output = state.output, []
        status, conditions = state.status, state.condition_depth
        script = parse(text)
        # With one command only, errexit makes no difference. Some shells apply it even within a condition.
        state.condition_depth = int(len(script.nodes) == 1 and isinstance(script.nodes[0], ShellCommand))
        try:
            self._execute_subshell(script)
            printed = state.output
        finally:
            state.condition_depth, state.output = conditions, before
        self._substitution_status, state.status = state.status, status
        if None in printed:
            return None
        return "".join(piece for piece in printed if piece is not None).rstrip("\n")

    # Simple commands

    def _execute_command(self, node: ShellCommand) -> None:
        state = self._state
        state.count_step()
        self._substitution_status = -1
        words = self._expand_words(node)
        assigned = [(name, self._expander.text(word)) for name, word in node.assignments] if words else []
        if words:
            self._run_program(node, words, assigned)
        else:
            for name, word in node.assignments:
                state.assign(name, self._expander.text(word))
            self._redirect(node)
            state.status = 0 if self._substitution_status == -1 else self._substitution_status
        self._exit_on_error()

    def _expand_words(self, node: ShellCommand) -> Arguments:
        if node.words and unquoted_text(node.words[0]) == "[[":
            if node.reads or node.writes:
                raise UnsupportedScript("`[[` with < or > is not supported")
            return [self._expander.text(word) for word in node.words]  # `[[` does no field splitting
        return [field for word in node.words for field in self._expander.fields(word)]

    def _run_program(self, node: ShellCommand, words: Arguments, assigned: list[tuple[str, str | None]]) -> None:
        """Run a program with its redirections and variable assignments."""
        state = self._state
        if assigned and words[0] in SPECIAL:
            raise UnsupportedScript(f"an assignment before `{words[0]}` is not kept in all shells")
        output = state.output
        is_certain = self._redirect(node)
        before = state.context.variables
        if assigned:
            state.context.variables = {**before, **dict(assigned)}
        if node.is_silent:
            state.output = None
        try:
            self._programs.run(words)
        finally:
            state.output = output
            if assigned:
                state.context.variables = before
        if not is_certain and state.status == 0:
            state.mark_uncertain(words[0] or "")

    def _redirect(self, node: ShellCommand) -> bool:
        """Open the redirected files of a command; return whether that certainly succeeds."""
        for word in node.reads:
            path = self._expand_path(word)
            state = self._state
            if path != "/dev/null" and (not state.has_file(path) or state.has_file(path, folder=True)):
                raise UnsupportedScript(f"it is unknown whether the file {path} exists")
        is_certain = True
        for word in node.writes:
            path = self._expand_path(word)
            if not path.startswith(("/dev/", "/proc/1/fd/")):
                disk, now = self._state.files, self._state.time
                is_created = disk.write(path, now)
                if is_created is False or disk.has_folder(path, now):
                    raise UnsupportedScript(f"{path} cannot be written")
                is_certain = is_certain and is_created is True
        return is_certain

    def _expand_path(self, word: Word) -> str:
        path = self._expander.text(word)
        if path is None:
            raise UnsupportedScript("the name of a redirected file is unknown")
        return path
