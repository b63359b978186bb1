"""Reads the part of the shell's language that scripts of pods are mostly written in.

Commands in sequence, `&&` and `||`, `if`, `while`, `until`, `for`, groups, quotes, `$NAME`, `$(command)`, `$((sum))`.
Whatever else there is (pipes, functions, `case`, here-documents) is not read: `NotUnderstood`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple


class NotUnderstood(Exception):
    """How a script goes cannot be told; the message says because of what."""


class Part(NamedTuple):
    """A piece of a word: text as it stands, or the name, command or sum whose value stands there."""

    kind: Literal["text", "name", "command", "sum"]
    text: str
    is_quoted: bool = False


Word = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command, with the files that it writes to."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    writes: tuple[Word, ...] = ()
    in_background: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """`first && second`, `first || second`."""

    first: Node
    operator: Literal["&&", "||"]
    second: Node


@dataclass(frozen=True, slots=True)
class Negation:
    """`! command`."""

    body: Node


@dataclass(frozen=True, slots=True)
class Condition:
    """`if`, with its `elif`s, and what is done otherwise."""

    branches: tuple[tuple[Sequence, Sequence], ...]
    otherwise: Sequence | None


@dataclass(frozen=True, slots=True)
class Loop:
    """`while` and `until`."""

    condition: Sequence
    body: Sequence
    until: bool


@dataclass(frozen=True, slots=True)
class Each:
    """`for name in words`."""

    name: str
    words: tuple[Word, ...]
    body: Sequence


@dataclass(frozen=True, slots=True)
class Sequence:
    """Nodes one after the other."""

    nodes: tuple[Node, ...]


Node = Command | Chain | Negation | Condition | Loop | Each | Sequence

_OPERATORS = re.compile(r"&&|\|\||;;|<<|>>|>&|[;&|()<>\n]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[?#@*$!0-9]")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_ENDS = frozenset(("then", "elif", "else", "fi", "do", "done", "}", ")"))
_UNREAD = frozenset(("case", "function", "select", "{"))


class _Operator(str):
    """An operator between words."""


_Token = _Operator | Word


def parse(text: str) -> Sequence:
    """Return what a script says."""
    parser = _Parser(_tokens(text))
    script = parser.sequence()
    if parser.position < len(parser.tokens):
        raise NotUnderstood(f"{_shown(parser.tokens[parser.position])} stands where no command can")
    return script


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
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
            tokens.append(_Operator(";" if operator[0] == "\n" else operator[0]))
            position = operator.end()
        elif re.compile(r"[12]>").match(text, position):
            position += 1
        else:
            word, position = _word(text, position)
            tokens.append(word)
    return tokens


def _word(text: str, position: int) -> tuple[Word, int]:
    parts: list[Part] = []
    quote = ""
    while position < len(text):
        character = text[position]
        if quote == "'":
            end = text.find("'", position)
            if end < 0:
                raise NotUnderstood("a quote is not closed")
            parts.append(Part("text", text[position:end], is_quoted=True))
            quote, position = "", end + 1
        elif character == "'" and not quote:
            quote, position = "'", position + 1
        elif character == '"':
            quote, position = ("" if quote else '"'), position + 1
            parts.append(Part("text", "", is_quoted=True))
        elif character == "\\" and position + 1 < len(text):
            parts.append(Part("text", text[position + 1], is_quoted=True))
            position += 2
        elif character == "`":
            raise NotUnderstood("`command` is not read, only $(command)")
        elif character == "$":
            part, position = _expansion(text, position + 1, is_quoted=bool(quote))
            parts.append(part)
        elif not quote and (character in " \t\r\n" or _OPERATORS.match(text, position)):
            break
        else:
            parts.append(Part("text", character, is_quoted=bool(quote)))
            position += 1
    if quote:
        raise NotUnderstood("a quote is not closed")
    return tuple(parts), position


def _expansion(text: str, position: int, *, is_quoted: bool) -> tuple[Part, int]:
    """Return what a dollar sign introduces, and where that ends."""
    if text.startswith("((", position):
        end = text.find("))", position)
        if end < 0:
            raise NotUnderstood("$(( is not closed")
        return Part("sum", text[position + 2 : end], is_quoted), end + 2
    if text.startswith("(", position):
        end = _closing(text, position)
        return Part("command", text[position + 1 : end], is_quoted), end + 1
    if text.startswith("{", position):
        end = text.find("}", position)
        name = text[position + 1 : end]
        if end < 0 or not _NAME.fullmatch(name):
            raise NotUnderstood(f"${{{name}}} is not read")
        return Part("name", name, is_quoted), end + 1
    if match := _NAME.match(text, position):
        return Part("name", match[0], is_quoted), match.end()
    return Part("text", "$", is_quoted), position


def _closing(text: str, position: int) -> int:
    depth = 0
    for place in range(position, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise NotUnderstood("$( is not closed")


def _plain(token: _Token | None) -> str | None:
    """Return a word that is nothing but unquoted text, such as a keyword is."""
    if token is None or isinstance(token, _Operator):
        return None
    if any(part.kind != "text" or part.is_quoted for part in token):
        return None
    return "".join(part.text for part in token)


def _shown(token: _Token) -> str:
    return str(token) if isinstance(token, _Operator) else "".join(part.text for part in token)


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.position = 0

    def _peek(self) -> _Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _take(self, keyword: str) -> bool:
        token = self._peek()
        if token == keyword if isinstance(token, _Operator) else _plain(token) == keyword:
            self.position += 1
            return True
        return False

    def _expect(self, keyword: str) -> None:
        if not self._take(keyword):
            raise NotUnderstood(f"`{keyword}` is missing")

    def _is_at_end(self) -> bool:
        """Return whether nothing follows that belongs to a sequence."""
        token = self._peek()
        return token is None or token == _Operator(")") or _plain(token) in _ENDS

    def sequence(self) -> Sequence:
        """Read commands up to the end, or to the word that closes what they stand in."""
        nodes: list[Node] = []
        while True:
            while self._take(";"):
                pass
            if self._is_at_end():
                return Sequence(tuple(nodes))
            node = self._chain()
            if self._take("&"):
                if not isinstance(node, Command):
                    raise NotUnderstood("only a simple command is followed in the background")
                node = Command(node.words, node.assignments, node.writes, in_background=True)
            elif not self._take(";") and not self._is_at_end():
                raise NotUnderstood(f"`{_shown(self.tokens[self.position])}` is not read")
            nodes.append(node)

    def _chain(self) -> Node:
        node = self._command()
        while True:
            if self._take("&&"):
                operator: Literal["&&", "||"] = "&&"
            elif self._take("||"):
                operator = "||"
            else:
                return node
            while self._take(";"):
                pass
            node = Chain(node, operator, self._command())

    def _command(self) -> Node:
        keyword = _plain(self._peek())
        if keyword in _UNREAD:
            raise NotUnderstood(f"`{keyword}` is not read")
        if self._take("!"):
            return Negation(self._command())
        if self._take("if"):
            return self._condition()
        if keyword in ("while", "until"):
            self.position += 1
            condition = self.sequence()
            return Loop(condition, self._body(), keyword == "until")
        if self._take("for"):
            return self._each()
        if self._take("("):
            group = self.sequence()
            self._expect(")")
            return group
        return self._simple()

    def _condition(self) -> Condition:
        branches = []
        while True:
            test = self.sequence()
            self._expect("then")
            branches.append((test, self.sequence()))
            if not self._take("elif"):
                break
        otherwise = self.sequence() if self._take("else") else None
        self._expect("fi")
        return Condition(tuple(branches), otherwise)

    def _body(self) -> Sequence:
        self._expect("do")
        body = self.sequence()
        self._expect("done")
        return body

    def _each(self) -> Each:
        name = _plain(self._peek())
        self.position += 1
        self._expect("in")
        words = []
        while (token := self._peek()) is not None and not isinstance(token, _Operator):
            words.append(token)
            self.position += 1
        self._expect(";")
        while self._take(";"):
            pass
        return Each(name or "", tuple(words), self._body())

    def _simple(self) -> Command:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        writes: list[Word] = []
        while (token := self._peek()) is not None:
            if isinstance(token, _Operator):
                if token not in (">", ">>", "<"):
                    break
                self.position += 1
                target = self._peek()
                if target is None or isinstance(target, _Operator):
                    raise NotUnderstood(f"nothing follows `{token}`")
                if token != "<":
                    writes.append(target)
            elif not words and (match := _ASSIGNMENT.match(_shown(token))) and token[0].kind == "text":
                assignments.append((match[1], _without(token, match.end())))
            else:
                words.append(token)
            self.position += 1
        token = self._peek()
        if isinstance(token, _Operator) and token in ("|", "<<", ";;", ">&"):
            raise NotUnderstood(f"`{token}` is not read")
        if isinstance(token, _Operator) and token == "(":
            raise NotUnderstood("functions are not read")
        return Command(tuple(words), tuple(assignments), tuple(writes))


def _without(word: Word, count: int) -> Word:
    """Return a word without its first characters, which are all plain text."""
    rest = list(word)
    while count > 0:
        part = rest.pop(0)
        if len(part.text) > count:
            rest.insert(0, part._replace(text=part.text[count:]))
        count -= len(part.text)
    return tuple(rest)
