"""What `test` and `[ … ]` say, of numbers, texts and files."""

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
    """Return whether a test holds; UnsupportedScript when that depends on what nobody knows (None)."""
    match words:
        case []:
            return False
        case [one]:
            return bool(require_known(one))
        # With three words the one between decides, whatever the first is (POSIX: test).
        case [one, ("=" | "==" | "!=") as comparison, other]:
            return (require_known(one) == require_known(other)) == (comparison != "!=")
        case [one, comparison, other] if comparison in _COMPARISONS:
            return _COMPARISONS[comparison](require_integer(one, "test"), require_integer(other, "test"))
        case ["!", *rest] if len(rest) < 4:
            return not evaluate_test(rest, state)
        case ["-n", one]:
            return bool(require_known(one))
        case ["-z", one]:
            return not require_known(one)
        case [("-e" | "-r" | "-w" | "-f" | "-d" | "-s" | "-x") as kind, path]:
            return _test_file(kind, require_known(path), state)
    raise UnsupportedScript(f"`test {' '.join(str(word) for word in words)}` is not read")


def _test_file(kind: str, path: str, state: ScriptState) -> bool:
    there, is_folder = state.has_file(path), state.has_file(path, folder=True)
    if there is None or is_folder is None:
        raise UnsupportedScript(f"nobody knows whether there is a file {path}")
    if kind == "-f":
        return there and not is_folder
    if kind in ("-d", "-x"):
        return is_folder
    if kind == "-s" and there and not is_folder:
        raise UnsupportedScript(f"nobody knows whether anything is in {path}")
    return there
