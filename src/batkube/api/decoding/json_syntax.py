"""Report JSON syntax errors with Go's messages.

Only texts that the fast parser has rejected are checked, with a scanner that reports what Go's does
(encoding/json/scanner.go). Some of those texts, such as ones with invalid UTF-8, are valid for Go: then no error is
raised.
"""

from __future__ import annotations

import re

from batkube.text.go_format import go_quote

#: The maximal nesting depth.
DEPTH_LIMIT = 10_000
_END = "unexpected end of JSON input"
# Atomic groups instead of possessive quantifiers, which are buggy before Python 3.11.5 (gh-106052). Repetitions of
# groups are limited, since each one takes memory.
_CHARACTERS = r'(?>(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,1000})'
_TEXT = rf'"{_CHARACTERS}"'
_SCALAR = rf"(?:{_TEXT}|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|\[\]|{{}})"
#: Runs of valid elements and fields, which are skipped at once.
_ELEMENTS = re.compile(rf"(?>(?:[ \t\r\n]*+{_SCALAR}[ \t\r\n]*+,){{0,1000}})")
_FIELDS = re.compile(rf"(?>(?:[ \t\r\n]*+{_TEXT}[ \t\r\n]*+:[ \t\r\n]*+{_SCALAR}[ \t\r\n]*+,){{0,1000}})")
_STRING_PART = re.compile(_CHARACTERS)
_SPACE = re.compile(r"[ \t\r\n]*")
_HEXADECIMAL_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{0,3}")
#: A number, which may be incomplete: its fraction (group 1) and its exponent (group 2).
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]*)?)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}


class ParseError(Exception):
    """The text is neither JSON nor YAML; the message is Go's."""


def check_syntax(data: bytes) -> None:
    """Raise ParseError with Go's message if `data` is not a single JSON value."""
    _Scanner(data.decode("latin-1")).run()


class _Scanner:
    """Scans the text once; `_open` is the stack of open brackets."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._open: list[str] = []

    def run(self) -> None:
        expects_value, is_first = True, False
        while expects_value or self._open:
            char = self._next_character()
            in_object = self._open[-1:] == ["{"]
            may_close = is_first or not expects_value
            if may_close and char == ("}" if in_object else "]"):
                self._open.pop()
                self._position += 1
                expects_value = is_first = False
            elif expects_value:
                if in_object:
                    self._key(char)
                expects_value = is_first = self._value()
            elif char == ",":
                self._position += 1
                self._skip(_FIELDS if in_object else _ELEMENTS)
                expects_value = True
            else:
                raise self._invalid("after object key:value pair" if in_object else "after array element")
        self._skip(_SPACE)
        if self._position < len(self._text):
            raise self._invalid("after top-level value")

    def _skip(self, run: re.Pattern[str]) -> None:
        """Advance over all repetitions of a pattern that may be empty."""
        while (match := run.match(self._text, self._position)) is not None and match[0]:
            self._position = match.end()

    def _current(self) -> str:
        if self._position >= len(self._text):
            raise ParseError(_END)
        return self._text[self._position]

    def _next_character(self) -> str:
        self._skip(_SPACE)
        return self._current()

    def _invalid(self, where: str) -> ParseError:
        # Within a literal, number or escape, Go treats the end as a space.
        char = self._text[self._position : self._position + 1] or " "
        character = {"'": "\\'", '"': '"'}.get(char) or go_quote(char)[1:-1]
        return ParseError(f"invalid character '{character}' {where}")

    def _key(self, char: str) -> None:
        if char != '"':
            raise self._invalid("looking for beginning of object key string")
        self._string()
        if self._next_character() != ":":
            raise self._invalid("after object key")
        self._position += 1

    def _value(self) -> bool:
        """Scan a scalar or an opening bracket; return whether it is a bracket."""
        char = self._next_character()
        if char in "{[":
            self._open.append(char)
            if len(self._open) > DEPTH_LIMIT:
                raise self._invalid("exceeded max depth")
            self._position += 1
        elif char == '"':
            self._string()
        elif char in _LITERALS:
            self._literal(_LITERALS[char])
        elif char in "-0123456789":
            self._number()
        else:
            raise self._invalid("looking for beginning of value")
        return char in "{["

    def _literal(self, word: str) -> None:
        for letter in word:
            if not self._text.startswith(letter, self._position):
                raise self._invalid(f"in literal {word} (expecting '{letter}')")
            self._position += 1

    def _string(self) -> None:
        self._position += 1
        self._skip(_STRING_PART)
        char = self._current()
        if char == "\\":
            escape = _HEXADECIMAL_ESCAPE.match(self._text, self._position)
            self._position = self._position + 1 if escape is None else escape.end()
            raise self._invalid("in string escape code" if escape is None else "in \\u hexadecimal character escape")
        if char != '"':
            raise self._invalid("in string literal")
        self._position += 1

    def _number(self) -> None:
        match = _NUMBER.match(self._text, self._position)
        assert match is not None, "the pattern matches the empty text, too"
        fraction, exponent = match.groups()
        self._position = match.end(1) if fraction == "." else match.end()
        if match[0] == "-":
            raise self._invalid("in numeric literal")
        if fraction == ".":
            raise self._invalid("after decimal point in numeric literal")
        if exponent is not None and not exponent[-1].isdigit():
            raise self._invalid("in exponent of numeric literal")
