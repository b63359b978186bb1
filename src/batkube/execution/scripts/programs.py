"""The programs and builtins that scripts in pods mostly use: how long each takes, its exit status and its output."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from batkube.execution.scripts.arithmetic import evaluate, require_integer
from batkube.execution.scripts.conditions import evaluate_test
from batkube.execution.scripts.file_programs import read, remove, touch
from batkube.execution.scripts.lexer import UnsupportedScript
from batkube.execution.scripts.state import Arguments, ScriptState
from batkube.kernel.instants import LATEST_NS, Duration, TooLong, duration

#: Programs that succeed at once: those without output, and those with unknown output.
_SILENT = frozenset((":", "true", "cd", "sync"))
_INSTANT = _SILENT | frozenset(("umask", "date", "pwd", "whoami", "id", "uname", "nproc"))
#: Programs that run the program named by their arguments; options are not supported.
_WRAPPERS = frozenset(("command", "nohup", "nice", "env", "exec"))
#: Shell builtins, which do not exist as programs.
_BUILTINS = frozenset(("exit", "wait", "export", "set", "trap", "unset", "break", "continue", "cd", "umask"))
_BUILTINS |= frozenset((":", "command", "exec", "[["))
#: Builtins that may change any state, and programs that kill others.
_UNSUPPORTED = frozenset(
    ("eval", ".", "source", "read", "shift", "getopts", "let", "declare", "typeset", "local", "return")
)
_UNSUPPORTED |= frozenset(("alias", "readonly", "mapfile", "readarray", "builtin", "shopt", "kill", "pkill", "killall"))
#: Special builtins: an assignment before them persists in some shells only.
SPECIAL = frozenset((":", "break", "continue", "exec", "exit", "export", "set", "trap", "unset"))
#: Folders in which the name of a program identifies it.
_BIN_FOLDERS = frozenset(("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"))
_OPTIONS = {"e": "errexit", "u": "nounset", "x": "", "v": "", "f": "", "m": "", "h": "", "l": "", "i": ""}
_SLEEP = re.compile(r"(?:\d+\.?\d*|\.\d+)[smhd]?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:=(.*))?", re.ASCII | re.DOTALL)
_MAX_SEQUENCE = 10_000


class ScriptExit(Exception):
    """The shell exits with the current status."""


class EndlessScript(Exception):
    """The script never ends."""


class LoopJump(Exception):
    """`break` or `continue` of the given number of nested loops."""

    def __init__(self, levels: int, is_break: bool) -> None:
        self.levels = levels
        self.is_break = is_break


class Programs:
    """Runs programs on a script's state."""

    def __init__(self, state: ScriptState, *, has_shell: bool = True) -> None:
        self._state = state
        self._has_shell = has_shell

    def run(self, words: Arguments) -> None:
        """Run one program; unknown words are None."""
        name, arguments = _name(words[0]), words[1:]
        if name in _UNSUPPORTED:
            raise UnsupportedScript(f"`{name}` is not supported")
        if name in _BUILTINS and (not self._has_shell or words[0] != name):
            raise UnsupportedScript(f"`{words[0]}` is not a program")
        if name in _WRAPPERS:
            self._run_wrapped(name, arguments)
        elif name == "timeout":
            _timeout(self._state, arguments, self.run)
        elif name in _PROGRAMS:
            _PROGRAMS[name](self._state, arguments)
        elif name in _INSTANT:
            self._state.status = 0
            if name not in _SILENT:
                self._state.write(None)
        else:
            self._state.run_unknown_program(name or "a program with an unknown name")

    def _run_wrapped(self, name: str, arguments: Arguments) -> None:
        state, rest = self._state, arguments
        if name == "env":
            while rest and rest[0] is not None and re.match(r"[A-Za-z_]\w*=", rest[0]):
                rest = rest[1:]
        if not rest:
            state.status = 0
            state.write(None if name in ("env", "nice") else "")
            return
        if rest[0] is None or rest[0].startswith("-") or rest[0] in _BUILTINS:
            raise UnsupportedScript(f"`{name} {rest[0]}` is not supported")
        self.run(rest)
        if name == "exec":
            if state.status is None and state.has_unknown_length:
                raise UnsupportedScript(f"program `{state.unknown_program}` is unknown")
            raise ScriptExit


def _name(word: str | None) -> str:
    """Return the name of a program, or its path if it is not in a folder of programs."""
    folder, slash, name = (word or "").rpartition("/")
    return name if not slash or folder in _BIN_FOLDERS or word == "/pause" else word or ""


def _exit(state: ScriptState, arguments: Arguments) -> None:
    if arguments:
        code = require_integer(arguments[0], "exit")
        if code < 0 or len(arguments) > 1:
            raise UnsupportedScript("`exit` with several numbers or a negative one differs between shells")
        state.status = code % 256
    raise ScriptExit


def _jump(state: ScriptState, arguments: Arguments, *, is_over: bool) -> None:
    levels = require_integer(arguments[0], "break or continue") if arguments else 1
    if not 0 < levels <= state.context.loop_depth:
        raise UnsupportedScript("`break` or `continue` is outside of a loop, or names more loops than there are")
    state.status = 0
    raise LoopJump(levels, is_over)


def _sleep(state: ScriptState, arguments: Arguments) -> None:
    if None in arguments:
        raise UnsupportedScript("the duration of `sleep` is unknown")
    texts = [text for text in arguments if text is not None]
    if texts in (["infinity"], ["inf"]):
        raise EndlessScript
    if not texts or not all(_SLEEP.fullmatch(text) for text in texts):
        raise UnsupportedScript(f"`sleep {' '.join(texts)}` is not a duration")
    length = sum(map(_parse_duration, texts))
    if length >= LATEST_NS:
        raise EndlessScript
    state.has_slept, state.status = True, 0
    state.time = Duration(state.time + length)


def _parse_duration(text: str) -> Duration:
    """Parse a duration, limited to the longest that a run can last."""
    try:
        return duration(text)
    except TooLong:
        return Duration(LATEST_NS)


def _timeout(state: ScriptState, arguments: Arguments, run: Callable[[Arguments], None]) -> None:
    limit, *command = arguments or [None]
    if limit is None or not _SLEEP.fullmatch(limit) or not command or not _parse_duration(limit):
        raise UnsupportedScript("`timeout` is supported with a duration and a command only")
    end = Duration(state.time + _parse_duration(limit))
    try:
        run(command)
        is_over = state.time < end
    except EndlessScript:
        is_over, state.has_slept = False, True
    if not is_over:
        state.time = end
        state.mark_uncertain("timeout")  # 124 or 143, depending on the implementation


def _wait(state: ScriptState, arguments: Arguments) -> None:
    """Wait for all background jobs, or by its process id for the only one."""
    jobs = state.context.background
    if arguments and (len(jobs) != 1 or arguments != [None]):
        raise UnsupportedScript("`wait` is supported for all background jobs, or for the only one")
    ends = [job.end for job in jobs]
    if None in ends:
        raise EndlessScript
    if any(job.status is None for job in jobs):
        raise UnsupportedScript(f"it waits for `{state.uncertain_program}`, whose duration is unknown")
    state.time = max([state.time, *(end for end in ends if end is not None)])
    state.status = jobs[0].status if arguments else 0
    state.context.background = jobs if arguments else []


def _export(state: ScriptState, arguments: Arguments) -> None:
    for argument in arguments:
        match = _ASSIGNMENT.fullmatch(argument or "")
        if match is None:
            raise UnsupportedScript(f"`export {argument}` is not supported")
        if match[2] is not None:
            state.assign(match[1], match[2])
    state.status = 0


def _unset(state: ScriptState, arguments: Arguments) -> None:
    for argument in arguments:
        if _ASSIGNMENT.fullmatch(argument or "") is None or not state.knows_all_variables:
            raise UnsupportedScript(f"`unset {argument}` is not supported")
        state.context.variables.pop(argument or "", None)
    state.status = 0


def _trap(state: ScriptState, arguments: Arguments) -> None:
    """Ignore handlers of signals, which come from outside; a handler at the end could change the exit code."""
    if any(
        argument is None or argument.upper() in ("EXIT", "0", "ERR", "DEBUG", "RETURN") for argument in arguments[1:]
    ):
        raise UnsupportedScript("`trap` with a handler at the end of the script is not supported")
    state.status = 0


def set_options(state: ScriptState, arguments: Arguments) -> None:
    """Apply the options of `set` or of a shell."""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word is None or not re.fullmatch(r"[-+][a-zA-Z]+", word):
            raise UnsupportedScript(f"`set {word}` is not supported")
        for letter in word[1:]:
            name = (rest.pop(0) if rest else None) if letter == "o" else _OPTIONS.get(letter)
            if name == "errexit":
                state.context.errexit = word[0] == "-"
            elif name == "nounset":
                state.context.nounset = word[0] == "-"
            elif name not in ("", "pipefail", "xtrace", "verbose"):
                raise UnsupportedScript(f"`set {word}` is not supported")
    state.status = 0


def _tail(state: ScriptState, arguments: Arguments) -> None:
    if any(argument in ("-f", "-F", "--follow") for argument in arguments):
        raise EndlessScript
    read(state, arguments)


def _pause(state: ScriptState, arguments: Arguments) -> None:
    raise EndlessScript


def _fail(state: ScriptState, arguments: Arguments) -> None:
    state.status = 1


def _test(state: ScriptState, arguments: Arguments, *, closed_by: str = "") -> None:
    if closed_by:
        if not arguments or arguments[-1] != closed_by:
            raise UnsupportedScript(f"`{closed_by}` is missing")
        arguments = arguments[:-1]
    state.status = 0 if evaluate_test(arguments, state) else 1


def _echo(state: ScriptState, arguments: Arguments) -> None:
    state.status = 0
    texts = [text for text in arguments if text is not None]
    # Shells differ in the meaning of options and backslashes.
    is_plain = len(texts) == len(arguments) and not any("\\" in text or text.startswith("-") for text in texts)
    state.write(" ".join(texts) + "\n" if is_plain else None)


def _printf(state: ScriptState, arguments: Arguments) -> None:
    if not arguments:
        raise UnsupportedScript("`printf` has nothing to print")
    plain = arguments[0] if len(arguments) == 1 else None
    state.write(None if plain is None or "%" in plain or "\\" in plain or plain.startswith("-") else plain)
    state.status = 0 if plain is not None and "%" not in plain else None
    if state.status is None:
        state.mark_uncertain("printf")


def _hostname(state: ScriptState, arguments: Arguments) -> None:
    name = None if arguments else state.context.variables.get("HOSTNAME")
    state.write(None if name is None else name + "\n")
    state.status = 0


def _expr(state: ScriptState, arguments: Arguments) -> None:
    if not all(argument is not None and re.fullmatch(r"-?\d+|[-+*/%()<>]|[<>!]=", argument) for argument in arguments):
        raise UnsupportedScript("`expr` is supported with integers only, one per argument")
    value = evaluate(" ".join(argument or "" for argument in arguments), lambda name: None)
    state.write(f"{value}\n")
    state.status = 1 if value == "0" else 0


def _seq(state: ScriptState, arguments: Arguments) -> None:
    numbers = [require_integer(argument, "seq") for argument in arguments]
    if not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[1] == 0):
        raise UnsupportedScript("`seq` is supported with one to three integers")
    first, last = (1 if len(numbers) == 1 else numbers[0]), numbers[-1]
    step = numbers[1] if len(numbers) == 3 else 1
    values = range(first, last + (1 if step > 0 else -1), step)
    if len(values) > _MAX_SEQUENCE:
        raise UnsupportedScript(f"`seq` counts beyond {_MAX_SEQUENCE:,}")
    state.write("".join(f"{value}\n" for value in values))
    state.status = 0


_PROGRAMS: dict[str, Callable[[ScriptState, Arguments], None]] = {
    "exit": _exit,
    "sleep": _sleep,
    "wait": _wait,
    "tail": _tail,
    "pause": _pause,
    "false": _fail,
    "break": functools.partial(_jump, is_over=True),
    "continue": functools.partial(_jump, is_over=False),
    "export": _export,
    "unset": _unset,
    "trap": _trap,
    "set": set_options,
    "touch": touch,
    "mkdir": functools.partial(touch, is_folder=True),
    "rm": remove,
    "cat": read,
    "ls": functools.partial(read, missing=None),
    "test": _test,
    "[": functools.partial(_test, closed_by="]"),
    "[[": functools.partial(_test, closed_by="]]"),
    "echo": _echo,
    "printf": _printf,
    "hostname": _hostname,
    "expr": _expr,
    "seq": _seq,
}
