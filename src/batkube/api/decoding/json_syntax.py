"""Report JSON syntax errors with Go's messages.

Only texts that the fast parser has rejected are checked, so this is a plain byte-by-byte scanner like Go's
(encoding/json/scanner.go). Some of those texts, such as ones with invalid UTF-8, are valid for Go: then no error is
raised.
"""

from __future__ import annotations

import re

from batkube.kernel.text.go_format import go_quote

#: The maximal nesting depth.
DEPTH_LIMIT = 10_000
_SPACE = " \t\r\n"
_END = "unexpected end of JSON input"
_EXPECT_VALUE, _EXPECT_VALUE_OR_END, _EXPECT_KEY, _EXPECT_KEY_OR_END, _EXPECT_SEPARATOR = range(5)
# Atomic groups instead of possessive quantifiers, which are buggy before Python 3.11.5 (gh-106052).
_TEXT = r'"(?>(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,1000})"'
_SCALAR = rf"(?:{_TEXT}|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|\[\]|{{}})"
#: Runs of valid elements and fields, which are skipped at once; limited in length, since each element takes memory.
_ELEMENTS = re.compile(rf"(?>(?:[ \t\r\n]*+{_SCALAR}[ \t\r\n]*+,){{1,1000}})")
_FIELDS = re.compile(rf"(?>(?:[ \t\r\n]*+{_TEXT}[ \t\r\n]*+:[ \t\r\n]*+{_SCALAR}[ \t\r\n]*+,){{1,1000}})")
_STRING_PART = re.compile(r'[^"\\\x00-\x1f]*')
_LITERALS = {"t": "true", "f": "false", "n": "null"}
#: The state machine of numbers: transitions by character class, and Go's error for other characters (None: may end).
_NUMBER: dict[str, tuple[dict[str, str], str | None]] = {
    "-": ({"0": "0", "1-9": "1"}, "in numeric literal"),
    "0": ({".": ".", "eE": "e"}, None),
    "1": ({"0-9": "1", ".": ".", "eE": "e"}, None),
    ".": ({"0-9": "f"}, "after decimal point in numeric literal"),
    "f": ({"0-9": "f", "eE": "e"}, None),
    "e": ({"+-": "s", "0-9": "d"}, "in exponent of numeric literal"),
    "s": ({"0-9": "d"}, "in exponent of numeric literal"),
    "d": ({"0-9": "d"}, None),
}
#: States in which any number of digits may follow, which are skipped at once.
_DIGITS_FOLLOW = frozenset("1fd")
_DIGITS = re.compile("[0-9]*")
_CLASSES = {"0": "0", "1-9": "123456789", "0-9": "0123456789", ".": ".", "eE": "eE", "+-": "+-"}


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
        expected = _EXPECT_VALUE
        while True:
            self._skip_space()
            if expected is _EXPECT_SEPARATOR:
                if not self._open:
                    break
                expected = self._after_value()
            elif expected in (_EXPECT_KEY, _EXPECT_KEY_OR_END):
                expected = self._key(expected)
            else:
                expected = self._value(expected)
        if self._position < len(self._text):
            raise self._invalid("after top-level value")

    def _skip_space(self) -> None:
        while self._position < len(self._text) and self._text[self._position] in _SPACE:
            self._position += 1

    def _current(self) -> str:
        if self._position >= len(self._text):
            raise ParseError(_END)
        return self._text[self._position]

    def _current_in_token(self) -> str:
        """Return the current character within a literal, number or escape, where Go treats the end as a space."""
        return self._text[self._position] if self._position < len(self._text) else " "

    def _invalid(self, where: str) -> ParseError:
        char = self._current_in_token()
        character = {"'": "\\'", '"': '"'}.get(char) or go_quote(char)[1:-1]
        return ParseError(f"invalid character '{character}' {where}")

    def _after_value(self) -> int:
        char = self._current()
        in_object = self._open[-1] == "{"
        if char == ",":
            self._position += 1
            self._skip_run(_FIELDS if in_object else _ELEMENTS)
            return _EXPECT_KEY if in_object else _EXPECT_VALUE
        if char != ("}" if in_object else "]"):
            raise self._invalid("after object key:value pair" if in_object else "after array element")
        self._close()
        return _EXPECT_SEPARATOR

    def _skip_run(self, run: re.Pattern[str]) -> None:
        while (match := run.match(self._text, self._position)) is not None:
            self._position = match.end()

    def _close(self) -> None:
        self._open.pop()
        self._position += 1

    def _key(self, expected: int) -> int:
        char = self._current()
        if char == "}" and expected is _EXPECT_KEY_OR_END:
            self._close()
            return _EXPECT_SEPARATOR
        if char != '"':
            raise self._invalid("looking for beginning of object key string")
        self._string()
        self._skip_space()
        if self._current() != ":":
            raise self._invalid("after object key")
        self._position += 1
        return _EXPECT_VALUE

    def _value(self, expected: int) -> int:
        char = self._current()
        if char == "]" and expected is _EXPECT_VALUE_OR_END:
            self._close()
        elif char in "{[":
            self._open.append(char)
            if len(self._open) > DEPTH_LIMIT:
                raise self._invalid("exceeded max depth")
            self._position += 1
            return _EXPECT_KEY_OR_END if char == "{" else _EXPECT_VALUE_OR_END
        elif char == '"':
            self._string()
        elif char in _LITERALS:
            self._literal(_LITERALS[char])
        elif char in "-0123456789":
            self._number()
        else:
            raise self._invalid("looking for beginning of value")
        return _EXPECT_SEPARATOR

    def _literal(self, word: str) -> None:
        for letter in word:
            if self._current_in_token() != letter:
                raise self._invalid(f"in literal {word} (expecting '{letter}')")
            self._position += 1

    def _string(self) -> None:
        self._position += 1
        while True:
            match = _STRING_PART.match(self._text, self._position)
            assert match is not None, "the pattern matches the empty text, too"
            self._position = match.end()
            char = self._current()
            if char not in '"\\':
                raise self._invalid("in string literal")
            self._position += 1
            if char == '"':
                return
            self._escape()

    def _escape(self) -> None:
        char = self._current_in_token()
        if char not in 'bfnrt\\/"u':
            raise self._invalid("in string escape code")
        self._position += 1
        for _ in range(4 if char == "u" else 0):
            if self._current_in_token() not in "0123456789abcdefABCDEF":
                raise self._invalid("in \\u hexadecimal character escape")
            self._position += 1

    def _number(self) -> None:
        first = self._current()
        state = first if first in "-0" else "1"
        self._position += 1
        self._skip_digits(state)
        while True:
            transitions, problem = _NUMBER[state]
            char = self._current_in_token()
            next_state = next((target for kind, target in transitions.items() if char in _CLASSES[kind]), None)
            if next_state is None:
                break
            state = next_state
            self._position += 1
            self._skip_digits(state)
        if problem is not None:
            raise self._invalid(problem)

    def _skip_digits(self, state: str) -> None:
        match = _DIGITS.match(self._text, self._position) if state in _DIGITS_FOLLOW else None
        self._position = self._position if match is None else match.end()
