"""What `test` and `[ … ]` say, of numbers, texts and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def holds(words: Sequence[str | None], has_file: Callable[[str], bool | None]) -> bool:
    """Return whether a test holds; NotUnderstood when that depends on what nobody knows (None)."""
    match words:
        case []:
            return False
        case ["!", *rest]:
            return not holds(rest, has_file)
        case [one]:
            return bool(known(one))
        case ["-n", one]:
            return bool(known(one))
        case ["-z", one]:
            return not known(one)
        case [("-e" | "-f" | "-r" | "-w" | "-s" | "-x" | "-d"), path]:
            there = has_file(known(path))
            if there is None:
                raise NotUnderstood(f"nobody knows whether there is a file {path}")
            return there
        case [one, ("=" | "=="), other]:
            return known(one) == known(other)
        case [one, "!=", other]:
            return known(one) != known(other)
        case [one, comparison, other] if comparison in _COMPARISONS:
            return _COMPARISONS[comparison](integer(one, "test"), integer(other, "test"))
    raise NotUnderstood(f"`test {' '.join(str(word) for word in words)}` is not read")
