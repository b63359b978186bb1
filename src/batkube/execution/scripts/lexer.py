"""The lexer of shell scripts: splits a script into operators and words (POSIX: Token Recognition)."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple


class UnsupportedScript(Exception):
    """The outcome of a script cannot be determined; the message says why."""


class WordPart(NamedTuple):
    """A part of a word: literal text, or a variable, command or arithmetic expression to be expanded."""

    kind: Literal["text", "name", "command", "sum"]
    text: str
    is_quoted: bool = False
    #: The default of `${name:-default}`.
    default: tuple[WordPart, ...] | None = None


Word = tuple[WordPart, ...]

# `&>` is one operator in bash and two in other shells. As one operator it is rejected by the parser.
_OPERATORS = re.compile(r"&&|\|\||&>|\(\(|;;|<<|>>|>&|<&|[;&|()<>\n]")
#: Redirections of streams such as `2>&1`, and the number in `2>file`.
_STREAMS = re.compile(r"([012]?)(?:>&([012-])(?![^\s;&|()<>])|(?=>))")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[?#@*$!0-9-]")
_WITH_DEFAULT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[1-9]):-")
#: The characters that a backslash escapes within double quotes; before others it is literal.
_ESCAPABLE = '$`"\\'


class ShellOperator(str):
    """An operator between words."""


#: Standard output is redirected, but not to a file; another stream than standard output is redirected to a file.
STDOUT_DISCARDED, STDERR_TO_FILE = ShellOperator(">&2"), ShellOperator("2>")

Token = ShellOperator | Word


def tokenize(text: str) -> list[Token]:
    """Split a script into words and operators."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character in " \t\r" or text.startswith("\\\n", position):
            position += 1 if character != "\\" else 2
        elif character == "#":
            position = (text.find("\n", position) + 1 or len(text) + 1) - 1
        elif (stream := _STREAMS.match(text, position)) and (stream[2] or stream[1]):
            tokens += _redirection(stream)
            position = stream.end()
        elif operator := _OPERATORS.match(text, position):
            tokens.append(ShellOperator(operator[0]))
            position = operator.end()
        else:
            word, position = _word(text, position)
            tokens.append(word)
    return tokens


def _redirection(match: re.Match[str]) -> list[Token]:
    """Return the effect of a redirection on standard output."""
    number, target = match.groups()
    if target is None:
        return [STDERR_TO_FILE] if number == "2" else []
    return [STDOUT_DISCARDED] if number in ("", "1") and target != "1" else []


def _word(text: str, position: int) -> tuple[Word, int]:
    parts: list[WordPart] = []
    is_quoted = False
    while position < len(text):
        character = text[position]
        if character == "'" and not is_quoted:
            end = text.find("'", position + 1)
            if end < 0:
                raise UnsupportedScript("a quote is not closed")
            parts.append(WordPart("text", text[position + 1 : end], is_quoted=True))
            position = end + 1
        elif character == '"':
            is_quoted, position = not is_quoted, position + 1
            parts.append(WordPart("text", "", is_quoted=True))
        elif character == "\\":
            escaped = text[position + 1 : position + 2]
            if escaped != "\n":  # a line continuation
                keeps_its_meaning = not escaped or (is_quoted and escaped not in _ESCAPABLE)
                parts.append(WordPart("text", "\\" * keeps_its_meaning + escaped, is_quoted=True))
            position += 2
        elif character in "`$":
            part, position = _expansion(text, position, is_quoted=is_quoted)
            parts.append(part)
        elif not is_quoted and (character in " \t\r\n" or _OPERATORS.match(text, position)):
            break
        else:
            parts.append(WordPart("text", character, is_quoted))
            position += 1
    if is_quoted:
        raise UnsupportedScript("a quote is not closed")
    return tuple(parts), position


def _expansion(text: str, position: int, *, is_quoted: bool) -> tuple[WordPart, int]:
    """Parse the expansion at a dollar sign or backquote; return it and the position after it."""
    if text[position] == "`":
        end = text.find("`", position + 1)
        if end < 0 or "\\" in text[position:end]:
            raise UnsupportedScript("nested backquotes are not supported, use $(command)")
        return WordPart("command", text[position + 1 : end], is_quoted), end + 1
    position += 1
    if text.startswith("((", position):
        end = _matching_parenthesis(text, position)
        if text[end - 1] != ")":
            raise UnsupportedScript("$(( is not closed")
        return WordPart("sum", text[position + 2 : end - 1], is_quoted), end + 1
    if text.startswith("(", position):
        end = _matching_parenthesis(text, position)
        return WordPart("command", text[position + 1 : end], is_quoted), end + 1
    if text.startswith("{", position):
        return _braces(text, position, is_quoted=is_quoted)
    if match := _NAME.match(text, position):
        return WordPart("name", match[0], is_quoted), match.end()
    if not is_quoted and text[position : position + 1] in ("'", '"', "["):
        raise UnsupportedScript(f"`${text[position]}` differs between shells")
    return WordPart("text", "$", is_quoted), position


def _braces(text: str, position: int, *, is_quoted: bool) -> tuple[WordPart, int]:
    end = text.find("}", position)
    inside = text[position + 1 : end]
    if end >= 0 and _NAME.fullmatch(inside):
        return WordPart("name", inside, is_quoted), end + 1
    match = _WITH_DEFAULT.match(inside)
    if end < 0 or match is None or re.search(r"[\s'\"\\`{]", inside):
        raise UnsupportedScript(f"${{{inside}}} is not supported")
    default, _ = _word(inside, match.end())
    return WordPart("name", match[1], is_quoted, default), end + 1


def _matching_parenthesis(text: str, position: int) -> int:
    depth = 0
    for place in range(position, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise UnsupportedScript("$( is not closed")
