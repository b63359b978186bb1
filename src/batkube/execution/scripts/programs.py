"""The programs that scripts of pods are mostly made of: how long each takes, how it ends, what it prints."""

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

#: Over as soon as they began, successfully: those that print nothing, and those of which nobody knows what they print.
_SILENT = frozenset((":", "true", "cd", "sync"))
_INSTANT = _SILENT | frozenset(("umask", "date", "pwd", "whoami", "id", "uname", "nproc"))
#: Run the program that their arguments name, if those begin with no option.
_WRAPPERS = frozenset(("command", "nohup", "nice", "env", "exec"))
#: Parts of a shell; without one there are no such programs.
_BUILTINS = frozenset(("exit", "wait", "export", "set", "trap", "unset", "break", "continue", "cd", "umask"))
_BUILTINS |= frozenset((":", "command", "exec", "[["))
#: Parts of a shell that may change anything, and programs that end others.
_UNSUPPORTED = frozenset(
    ("eval", ".", "source", "read", "shift", "getopts", "let", "declare", "typeset", "local", "return")
)
_UNSUPPORTED |= frozenset(("alias", "readonly", "mapfile", "readarray", "builtin", "shopt", "kill", "pkill", "killall"))
#: With an assignment before them, these keep it in some shells and not in others.
SPECIAL = frozenset((":", "break", "continue", "exec", "exit", "export", "set", "trap", "unset"))
#: Where what a program's path says is what its name says.
_BIN_FOLDERS = frozenset(("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"))
_OPTIONS = {"e": "errexit", "u": "nounset", "x": "", "v": "", "f": "", "m": "", "h": "", "l": "", "i": ""}
_SLEEP = re.compile(r"(?:\d+\.?\d*|\.\d+)[smhd]?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:=(.*))?", re.ASCII | re.DOTALL)
_MAX_SEQUENCE = 10_000


class ScriptExit(Exception):
    """The shell ends, with the present status."""


class EndlessScript(Exception):
    """The script goes on for ever."""


class LoopJump(Exception):
    """So many loops are left; or the last of them begins its next round."""

    def __init__(self, levels: int, is_over: bool) -> None:
        self.levels = levels
        self.is_break = is_over


class Programs:
    """Runs programs by what is known of them."""

    def __init__(self, state: ScriptState, *, has_shell: bool = True) -> None:
        self._state = state
        self._has_shell = has_shell

    def run(self, words: Arguments) -> None:
        """Let one program run; words that nobody knows are None."""
        name, arguments = _name(words[0]), words[1:]
        if name in _UNSUPPORTED:
            raise UnsupportedScript(f"`{name}` is not followed")
        if name in _BUILTINS and (not self._has_shell or words[0] != name):
            raise UnsupportedScript(f"`{words[0]}` is no program")
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
            self._state.run_unknown_program(name or "a program whose name is not known")

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
            raise UnsupportedScript(f"`{name} {rest[0]}` is not followed")
        self.run(rest)
        if name == "exec":
            if state.status is None and state.has_unknown_length:
                raise UnsupportedScript(f"nobody knows what `{state.unknown_program}` does")
            raise ScriptExit


def _name(word: str | None) -> str:
    """Return a program by the name that it is known by, its path if that says more."""
    folder, slash, name = (word or "").rpartition("/")
    return name if not slash or folder in _BIN_FOLDERS or word == "/pause" else word or ""


def _exit(state: ScriptState, arguments: Arguments) -> None:
    if arguments:
        code = require_integer(arguments[0], "exit")
        if code < 0 or len(arguments) > 1:
            raise UnsupportedScript("`exit` is not the same in all shells with more than one number, or less than none")
        state.status = code % 256
    raise ScriptExit


def _jump(state: ScriptState, arguments: Arguments, *, is_over: bool) -> None:
    levels = require_integer(arguments[0], "break or continue") if arguments else 1
    if not 0 < levels <= state.context.loop_depth:
        raise UnsupportedScript("`break` or `continue` stands outside of a loop, or of fewer than it says")
    state.status = 0
    raise LoopJump(levels, is_over)


def _sleep(state: ScriptState, arguments: Arguments) -> None:
    if None in arguments:
        raise UnsupportedScript("nobody knows for how long it sleeps")
    texts = [text for text in arguments if text is not None]
    if texts in (["infinity"], ["inf"]):
        raise EndlessScript
    if not texts or not all(_SLEEP.fullmatch(text) for text in texts):
        raise UnsupportedScript(f"`sleep {' '.join(texts)}` is not a length")
    length = sum(map(_parse_duration, texts))
    if length >= LATEST_NS:
        raise EndlessScript
    state.has_slept, state.status = True, 0
    state.time = Duration(state.time + length)


def _parse_duration(text: str) -> Duration:
    """Return a length of time; at most as long as any run can last."""
    try:
        return duration(text)
    except TooLong:
        return Duration(LATEST_NS)


def _timeout(state: ScriptState, arguments: Arguments, run: Callable[[Arguments], None]) -> None:
    limit, *command = arguments or [None]
    if limit is None or not _SLEEP.fullmatch(limit) or not command or not _parse_duration(limit):
        raise UnsupportedScript("`timeout` is followed with a length and a command alone")
    end = Duration(state.time + _parse_duration(limit))
    try:
        run(command)
        is_over = state.time < end
    except EndlessScript:
        is_over, state.has_slept = False, True
    if not is_over:
        state.time = end
        state.mark_uncertain("timeout")  # 124 or 143, as it was built


def _wait(state: ScriptState, arguments: Arguments) -> None:
    """Wait for all in the background, or, where there is but one, for that one by its number."""
    jobs = state.context.background
    if arguments and (len(jobs) != 1 or arguments != [None]):
        raise UnsupportedScript("`wait` is followed for all, or for the only one")
    ends = [job.end for job in jobs]
    if None in ends:
        raise EndlessScript
    if any(job.status is None for job in jobs):
        raise UnsupportedScript(f"nobody knows for how long `{state.uncertain_program}` is waited for")
    state.time = max([state.time, *(end for end in ends if end is not None)])
    state.status = jobs[0].status if arguments else 0
    state.context.background = jobs if arguments else []


def _export(state: ScriptState, arguments: Arguments) -> None:
    for one in arguments:
        match = _ASSIGNMENT.fullmatch(one or "")
        if match is None:
            raise UnsupportedScript(f"`export {one}` is not followed")
        if match[2] is not None:
            state.assign(match[1], match[2])
    state.status = 0


def _unset(state: ScriptState, arguments: Arguments) -> None:
    for one in arguments:
        if _ASSIGNMENT.fullmatch(one or "") is None or not state.knows_all_variables:
            raise UnsupportedScript(f"`unset {one}` is not followed")
        state.context.variables.pop(one or "", None)
    state.status = 0


def _trap(state: ScriptState, arguments: Arguments) -> None:
    """Signals come from without; what is done at the end of the script would change how it ends."""
    if any(one is None or one.upper() in ("EXIT", "0", "ERR", "DEBUG", "RETURN") for one in arguments[1:]):
        raise UnsupportedScript("what `trap` does at the end is not followed")
    state.status = 0


def set_options(state: ScriptState, arguments: Arguments) -> None:
    """Do what `set`, or a shell itself, does with options."""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word is None or not re.fullmatch(r"[-+][a-zA-Z]+", word):
            raise UnsupportedScript(f"`set {word}` is not followed")
        for letter in word[1:]:
            name = (rest.pop(0) if rest else None) if letter == "o" else _OPTIONS.get(letter)
            if name == "errexit":
                state.context.errexit = word[0] == "-"
            elif name == "nounset":
                state.context.nounset = word[0] == "-"
            elif name not in ("", "pipefail", "xtrace", "verbose"):
                raise UnsupportedScript(f"`set {word}` is not followed")
    state.status = 0


def _tail(state: ScriptState, arguments: Arguments) -> None:
    if any(one in ("-f", "-F", "--follow") for one in arguments):
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
    texts = [one for one in arguments if one is not None]
    # Shells differ in what options and backslashes mean.
    is_plain = len(texts) == len(arguments) and not any("\\" in one or one.startswith("-") for one in texts)
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
    if not all(one is not None and re.fullmatch(r"-?\d+|[-+*/%()<>]|[<>!]=", one) for one in arguments):
        raise UnsupportedScript("`expr` is followed with numbers alone, each a word")
    value = evaluate(" ".join(one or "" for one in arguments), lambda name: None)
    state.write(f"{value}\n")
    state.status = 1 if value == "0" else 0


def _seq(state: ScriptState, arguments: Arguments) -> None:
    numbers = [require_integer(one, "seq") for one in arguments]
    if not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[1] == 0):
        raise UnsupportedScript("`seq` is followed with one to three numbers")
    first, last = (1 if len(numbers) == 1 else numbers[0]), numbers[-1]
    step = numbers[1] if len(numbers) == 3 else 1
    values = range(first, last + (1 if step > 0 else -1), step)
    if len(values) > _MAX_SEQUENCE:
        raise UnsupportedScript(f"`seq` counts further than {_MAX_SEQUENCE:,}")
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
