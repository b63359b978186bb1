"""Regular expressions as Go has them.

Schemas and CEL rules hold patterns in RE2's syntax, and the real server runs them with an engine of that family: no
look-around, no back-references, and a time that grows with the text alone, whatever the pattern. So does this one;
Python's own engine means other things by some patterns, and can be kept busy for years by others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import re2  # type: ignore[import-untyped]

from batkube.kernel.memo import memoized

#: What RE2 says of a pattern, and what Go says (Go: regexp/syntax, ErrorCode); the part at fault follows both.
_GO_MESSAGES = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.log_errors = False


class Match(Protocol):
    """Where a pattern fits a text."""

    def __getitem__(self, group: int) -> str:
        """Return the text of a group; 0 is the whole match."""


class Pattern(Protocol):
    """A pattern, ready to be used."""

    def search(self, text: str) -> Match | None:
        """Return the first match anywhere in the text."""

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield all matches that do not overlap."""


class BadPattern(ValueError):
    """Go refuses the pattern; the text is Go's own."""


@memoized(1024)
def compile_pattern(pattern: str) -> Pattern:
    """Return a pattern ready to be used; raises Malformed."""
    try:
        result: Pattern = re2.compile(pattern, _RE2_OPTIONS)
    except re2.error as error:
        raise BadPattern(f"error parsing regexp: {_go_message(pattern, error.args[0].decode())}") from None
    return result


def _go_message(pattern: str, problem: str) -> str:
    words, _, part = problem.partition(": ")
    if part.startswith("(?<"):
        # Go takes what begins so for a group with a name.
        rest = pattern[pattern.index(part) :]
        words, part = "invalid named capture group", rest[: rest.find(">") + 1] or rest
    return f"{_GO_MESSAGES.get(words, words)}: `{part}`"
