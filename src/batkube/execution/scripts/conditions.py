"""What `test` and `[ … ]` say, of numbers, texts and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from batkube.execution.scripts.state import ScriptState
from batkube.execution.scripts.sums import integer, known
from batkube.execution.scripts.words import NotUnderstood

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}


def holds(words: Sequence[str | None], state: ScriptState) -> bool:
    """Return whether a test holds; NotUnderstood when that depends on what nobody knows (None)."""
    match words:
        case []:
            return False
        case [one]:
            return bool(known(one))
        # With three words the one between decides, whatever the first is (POSIX: test).
        case [one, ("=" | "==" | "!=") as comparison, other]:
            return (known(one) == known(other)) == (comparison != "!=")
        case [one, comparison, other] if comparison in _COMPARISONS:
            return _COMPARISONS[comparison](integer(one, "test"), integer(other, "test"))
        case ["!", *rest] if len(rest) < 4:
            return not holds(rest, state)
        case ["-n", one]:
            return bool(known(one))
        case ["-z", one]:
            return not known(one)
        case [("-e" | "-r" | "-w" | "-f" | "-d" | "-s" | "-x") as kind, path]:
            return _is_file(kind, known(path), state)
    raise NotUnderstood(f"`test {' '.join(str(word) for word in words)}` is not read")


def _is_file(kind: str, path: str, state: ScriptState) -> bool:
    there, is_folder = state.has_file(path), state.has_file(path, folder=True)
    if there is None or is_folder is None:
        raise NotUnderstood(f"nobody knows whether there is a file {path}")
    if kind == "-f":
        return there and not is_folder
    if kind in ("-d", "-x"):
        return is_folder
    if kind == "-s" and there and not is_folder:
        raise NotUnderstood(f"nobody knows whether anything is in {path}")
    return there
