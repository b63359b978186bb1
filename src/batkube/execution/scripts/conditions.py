"""Evaluates `test` and `[ … ]` for numbers, strings and files (POSIX: test)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from batkube.execution.scripts.arithmetic import require_integer, require_known
from batkube.execution.scripts.lexer import UnsupportedScript
from batkube.execution.scripts.state import ScriptState

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}


def evaluate_test(words: Sequence[str | None], state: ScriptState) -> bool:
    """Return whether a test holds; raise UnsupportedScript if it depends on an unknown word (None)."""
    match words:
        case []:
            return False
        case [left]:
            return bool(require_known(left))
        # POSIX, test: of three arguments the second decides if it is a binary operator, whatever the first is.
        case [left, ("=" | "==" | "!=") as comparison, right]:
            return (require_known(left) == require_known(right)) == (comparison != "!=")
        case [left, comparison, right] if comparison in _COMPARISONS:
            return _COMPARISONS[comparison](require_integer(left, "test"), require_integer(right, "test"))
        case ["!", *rest] if len(rest) < 4:
            return not evaluate_test(rest, state)
        case ["-n", left]:
            return bool(require_known(left))
        case ["-z", left]:
            return not require_known(left)
        case [("-e" | "-r" | "-w" | "-f" | "-d" | "-s" | "-x") as kind, path]:
            return _test_file(kind, require_known(path), state)
    raise UnsupportedScript(f"`test {' '.join(str(word) for word in words)}` is not supported")


def _test_file(kind: str, path: str, state: ScriptState) -> bool:
    exists, is_folder = state.has_file(path), state.has_file(path, folder=True)
    if exists is None or is_folder is None:
        raise UnsupportedScript(f"it is unknown whether the file {path} exists")
    if kind == "-f":
        return exists and not is_folder
    if kind in ("-d", "-x"):
        return is_folder
    if kind == "-s" and exists and not is_folder:
        raise UnsupportedScript(f"it is unknown whether the file {path} is empty")
    return exists
