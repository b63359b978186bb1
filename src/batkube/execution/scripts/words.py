"""Words of a shell script, as they are written: text, and what other text will stand in their place."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple


class NotUnderstood(Exception):
    """How a script goes cannot be told; the message says because of what."""


class WordPart(NamedTuple):
    """A piece of a word: text as it stands, or the name, command or sum whose value stands there."""

    kind: Literal["text", "name", "command", "sum"]
    text: str
    is_quoted: bool = False


Word = tuple[WordPart, ...]

_OPERATORS = re.compile(r"&&|\|\||;;|<<|>>|>&|[;&|()<>\n]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[?#@*$!0-9]")


class ShellOperator(str):
    """An operator between words."""


Token = ShellOperator | Word


def tokens(text: str) -> list[Token]:
    """Return the words and operators of a script, a new line as `;`."""
    made: list[Token] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character in " \t\r" or text.startswith("\\\n", position):
            position += 1 if character != "\\" else 2
        elif character == "#":
            position = (text.find("\n", position) + 1 or len(text) + 1) - 1
        elif (digit := re.compile(r"[012]?(?:>>|>&?|<&)(?:[012-])?").match(text, position)) and digit[0][-1] in "012-":
            position = digit.end()  # 2>&1 and the like: nobody reads what is printed
        elif operator := _OPERATORS.match(text, position):
            made.append(ShellOperator(";" if operator[0] == "\n" else operator[0]))
            position = operator.end()
        elif re.compile(r"[12]>").match(text, position):
            position += 1
        else:
            word, position = _word(text, position)
            made.append(word)
    return made


def _word(text: str, position: int) -> tuple[Word, int]:
    parts: list[WordPart] = []
    quote = ""
    while position < len(text):
        character = text[position]
        if quote == "'":
            end = text.find("'", position)
            if end < 0:
                raise NotUnderstood("a quote is not closed")
            parts.append(WordPart("text", text[position:end], is_quoted=True))
            quote, position = "", end + 1
        elif character == "'" and not quote:
            quote, position = "'", position + 1
        elif character == '"':
            quote, position = ("" if quote else '"'), position + 1
            parts.append(WordPart("text", "", is_quoted=True))
        elif character == "\\" and position + 1 < len(text):
            parts.append(WordPart("text", text[position + 1], is_quoted=True))
            position += 2
        elif character == "`":
            raise NotUnderstood("`command` is not read, only $(command)")
        elif character == "$":
            part, position = _expansion(text, position + 1, is_quoted=bool(quote))
            parts.append(part)
        elif not quote and (character in " \t\r\n" or _OPERATORS.match(text, position)):
            break
        else:
            parts.append(WordPart("text", character, is_quoted=bool(quote)))
            position += 1
    if quote:
        raise NotUnderstood("a quote is not closed")
    return tuple(parts), position


def _expansion(text: str, position: int, *, is_quoted: bool) -> tuple[WordPart, int]:
    """Return what a dollar sign introduces, and where that ends."""
    if text.startswith("((", position):
        end = text.find("))", position)
        if end < 0:
            raise NotUnderstood("$(( is not closed")
        return WordPart("sum", text[position + 2 : end], is_quoted), end + 2
    if text.startswith("(", position):
        end = _closing(text, position)
        return WordPart("command", text[position + 1 : end], is_quoted), end + 1
    if text.startswith("{", position):
        end = text.find("}", position)
        name = text[position + 1 : end]
        if end < 0 or not _NAME.fullmatch(name):
            raise NotUnderstood(f"${{{name}}} is not read")
        return WordPart("name", name, is_quoted), end + 1
    if match := _NAME.match(text, position):
        return WordPart("name", match[0], is_quoted), match.end()
    return WordPart("text", "$", is_quoted), position


def _closing(text: str, position: int) -> int:
    depth = 0
    for place in range(position, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise NotUnderstood("$( is not closed")
