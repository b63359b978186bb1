"""The lexer: splits the text of an expression into tokens."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from batkube.kernel.numbers import parse_float, parse_int

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\n]*)
    |(?P<number>0x[0-9a-fA-F]+u?|0X[0-9a-fA-F]+u?|\d*\.\d+([eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?)
    |(?P<text>([bB][rR]|[rR][bB]|[bBrR])?(\"\"\"|'''|"|'))
    |(?P<word>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<quoted>`[^`\n]+`)
    |(?P<symbol>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SELF_ESCAPES = "\\\"'`?"
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_LARGEST_INT, _LARGEST_UINT = 2**63, 2**64

END = "<EOF>"

Value = Any
"""Any CEL value."""


class Unsigned(int):
    """A CEL `uint`."""


class Token(NamedTuple):
    """A token: `kind` is `word`, `literal`, `quoted` (an identifier), `symbol` or `end`."""

    kind: str
    text: str
    at: int
    value: Any = None


def tokenize(text: str) -> tuple[list[Token], list[tuple[int, str]]]:
    """Return the tokens of an expression, ending with an end token, and the positions and messages of errors."""
    result: list[Token] = []
    problems: list[tuple[int, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            # An incomplete operator is reported together with the text that follows it.
            piece = text[at : at + 2] if text[at] in "=&|" else text[at]
            problems.append((at, f"Syntax error: token recognition error at: '{piece}'"))
            at += len(piece)
            continue
        try:
            token, at = _token(text, match)
        except ValueError as problem:
            problems.append((at, str(problem)))
            is_number = match.lastgroup == "number"
            at = match.end() if is_number else len(text)
            token = Token("literal", match[0], match.start(), 0) if is_number else None
        if token is not None:
            result.append(token)
    result.append(Token("end", END, len(text)))
    return result, problems


def _token(text: str, match: re.Match[str]) -> tuple[Token | None, int]:
    """Return a token (None for white space and comments) and its end; raises ValueError."""
    kind, piece, start, end = str(match.lastgroup), match[0], match.start(), match.end()
    if kind == "blank":
        return None, end
    if kind == "text":
        value, end = _string(text, start, match)
        return Token("literal", text[start:end], start, value), end
    if kind == "number":
        return Token("literal", piece, start, _number(piece)), end
    if kind == "word" and piece in _CONSTANTS:
        return Token("literal", piece, start, _CONSTANTS[piece]), end
    if kind == "quoted":
        return Token("quoted", piece, start, piece[1:-1]), end
    return Token("symbol" if piece == "in" else kind, piece, start), end


def _number(piece: str) -> int | float:
    is_hex = piece[:2].lower() == "0x"
    if not is_hex and any(char in piece for char in ".eE"):
        return parse_float(piece)
    if piece[-1] in "uU":
        number = int(piece[:-1], 16) if is_hex else parse_int(piece[:-1])
        if number is None or number >= _LARGEST_UINT:
            raise ValueError("invalid uint literal")
        return Unsigned(number)
    number = int(piece, 16) if is_hex else parse_int(piece)
    if number is None or number > _LARGEST_INT:
        raise ValueError("invalid int literal")
    return number


def _string(text: str, start: int, match: re.Match[str]) -> tuple[str | bytes, int]:
    """Return a string or bytes literal and its end."""
    opening = match["text"]
    quote = opening.lstrip("bBrR")
    prefix = opening[: len(opening) - len(quote)].lower()
    at = match.end()
    while not text.startswith(quote, at):
        if at >= len(text) or (len(quote) == 1 and text[at] == "\n"):
            raise ValueError(f"Syntax error: token recognition error at: '{text[start:]}'")
        at += 2 if text[at] == "\\" and "r" not in prefix else 1
    content, end = text[match.end() : at], at + len(quote)
    if "r" not in prefix:
        content = _ESCAPE.sub(lambda escape: _unescape(text, start, escape[1]), content)
    return (content.encode() if "b" in prefix else content), end


def _unescape(text: str, at: int, escape: str) -> str:
    if escape in _ESCAPES:
        return _ESCAPES[escape]
    if len(escape) == 1 and escape in _SELF_ESCAPES:
        return escape
    if escape[0] in "xXuU":
        return chr(int(escape[1:], 16))
    if len(escape) == 3:
        return chr(int(escape, 8))
    raise ValueError(f"Syntax error: token recognition error at: '{text[at:]}'")
