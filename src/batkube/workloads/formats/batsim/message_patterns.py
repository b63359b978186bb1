"""The patterns of `recv` profiles: which messages a job goes on with in which way.

Batsim matches the whole message with a regular expression of C++ (std::regex, ECMAScript's grammar). Python's are the
same for what such patterns use, but for the classes of characters that have names: `[[:alpha:]_]+`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAMED_CLASS = re.compile(r"\[:([a-z]+):\]")
_NAMED_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "w": r"\w",
    "xdigit": "0-9A-Fa-f",
}
#: What a profile without a pattern goes on with: anything.
_MATCH_ALL = ".*"


def next_profile(fields: Mapping[str, object], message: str) -> str:
    """Return the profile that a job goes on with when it hears a message; none of them is an empty text."""
    matches = compile_pattern(str(fields.get("regex", _MATCH_ALL))).fullmatch(message)
    return str(fields.get("success" if matches else "failure", ""))


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern to match messages with. Raises ValueError for what is none."""
    try:
        return re.compile(_NAMED_CLASS.sub(_expand_class, pattern), re.ASCII)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def _expand_class(match: re.Match[str]) -> str:
    if match[1] not in _NAMED_CLASSES:
        raise ValueError(f"there is no class of characters {match[0]}")
    return _NAMED_CLASSES[match[1]]
