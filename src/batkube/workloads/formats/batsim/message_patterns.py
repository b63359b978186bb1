"""The patterns of `recv` profiles, which select a job's next profile by the message it receives.

Batsim matches the whole message with a C++ regular expression (std::regex, ECMAScript grammar). For such patterns,
Python's syntax is the same except for named character classes such as `[[:alpha:]_]+`.
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
#: The pattern of a profile without one.
_MATCH_ALL = ".*"


def next_profile(fields: Mapping[str, object], message: str) -> str:
    """Return the name of the profile that a job executes after it received `message`; empty if there is none."""
    matches = compile_pattern(str(fields.get("regex", _MATCH_ALL))).fullmatch(message)
    return str(fields.get("success" if matches else "failure", ""))


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Translate and compile a C++ pattern. Raises ValueError if it is invalid."""
    try:
        return re.compile(_NAMED_CLASS.sub(_expand_class, pattern), re.ASCII)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None


def _expand_class(match: re.Match[str]) -> str:
    if match[1] not in _NAMED_CLASSES:
        raise ValueError(f"{match[0]} is not a character class")
    return _NAMED_CLASSES[match[1]]
