"""Regular expressions as in Go.

Patterns in schemas and CEL rules have RE2's syntax, and Go's engine guarantees linear time: no look-around, no
back-references. This module uses RE2 too. Python's own engine gives some patterns another meaning, and takes
exponential time for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import re2  # type: ignore[import-untyped]

from batkube.kernel.memo import memoized

#: RE2's messages, and Go's (Go: regexp/syntax, ErrorCode); both append the invalid part of the pattern.
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
    """A match of a pattern in a string."""

    def __getitem__(self, group: int) -> str:
        """Return the text of a group; 0 is the whole match."""


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str) -> Match | None:
        """Return the first match anywhere in the string."""

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield all non-overlapping matches."""


class BadPattern(ValueError):
    """Go rejects the pattern; the text is Go's error message."""


@memoized(1024)
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern; raises BadPattern."""
    try:
        result: Pattern = re2.compile(pattern, _RE2_OPTIONS)
    except re2.error as error:
        raise BadPattern(f"error parsing regexp: {_go_message(pattern, error.args[0].decode())}") from None
    return result


def _go_message(pattern: str, problem: str) -> str:
    words, _, part = problem.partition(": ")
    if part.startswith("(?<"):
        # Go parses this prefix as a named group.
        rest = pattern[pattern.index(part) :]
        words, part = "invalid named capture group", rest[: rest.find(">") + 1] or rest
    return f"{_GO_MESSAGES.get(words, words)}: `{part}`"
