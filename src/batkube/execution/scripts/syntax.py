"""Reads the part of the shell's language that scripts of pods are mostly written in.

Commands in sequence, `&&` and `||`, `if`, `while`, `until`, `for`, groups, quotes, `$NAME`, `$(command)`, `$((sum))`.
Whatever else there is (pipes, functions, `case`, here-documents) is not read: `NotUnderstood`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from batkube.execution.scripts.words import NotUnderstood, ShellOperator, Token, Word, tokens


@dataclass(frozen=True, slots=True)
class ShellCommand:
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
class Branching:
    """`if`, with its `elif`s, and what is done otherwise."""

    branches: tuple[tuple[Sequence, Sequence], ...]
    otherwise: Sequence | None


@dataclass(frozen=True, slots=True)
class ShellLoop:
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


Node = ShellCommand | Chain | Negation | Branching | ShellLoop | Each | Sequence

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_ENDS = frozenset(("then", "elif", "else", "fi", "do", "done", "}", ")"))
_UNREAD = frozenset(("case", "function", "select", "{"))


def parse(text: str) -> Sequence:
    """Return what a script says."""
    parser = _Parser(tokens(text))
    script = parser.sequence()
    if parser.position < len(parser.tokens):
        raise NotUnderstood(f"{_shown(parser.tokens[parser.position])} stands where no command can")
    return script


def _plain(token: Token | None) -> str | None:
    """Return a word that is nothing but unquoted text, such as a keyword is."""
    if token is None or isinstance(token, ShellOperator):
        return None
    if any(part.kind != "text" or part.is_quoted for part in token):
        return None
    return "".join(part.text for part in token)


def _shown(token: Token) -> str:
    return str(token) if isinstance(token, ShellOperator) else "".join(part.text for part in token)


class _Parser:
    def __init__(self, read: list[Token]) -> None:
        self.tokens = read
        self.position = 0

    def _peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _take(self, keyword: str) -> bool:
        token = self._peek()
        if token == keyword if isinstance(token, ShellOperator) else _plain(token) == keyword:
            self.position += 1
            return True
        return False

    def _expect(self, keyword: str) -> None:
        if not self._take(keyword):
            raise NotUnderstood(f"`{keyword}` is missing")

    def _is_at_end(self) -> bool:
        """Return whether nothing follows that belongs to a sequence."""
        token = self._peek()
        return token is None or token == ShellOperator(")") or _plain(token) in _ENDS

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
                if not isinstance(node, ShellCommand):
                    raise NotUnderstood("only a simple command is followed in the background")
                node = ShellCommand(node.words, node.assignments, node.writes, in_background=True)
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
            return ShellLoop(condition, self._body(), keyword == "until")
        if self._take("for"):
            return self._each()
        if self._take("("):
            group = self.sequence()
            self._expect(")")
            return group
        return self._simple()

    def _condition(self) -> Branching:
        branches = []
        while True:
            test = self.sequence()
            self._expect("then")
            branches.append((test, self.sequence()))
            if not self._take("elif"):
                break
        otherwise = self.sequence() if self._take("else") else None
        self._expect("fi")
        return Branching(tuple(branches), otherwise)

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
        while (token := self._peek()) is not None and not isinstance(token, ShellOperator):
            words.append(token)
            self.position += 1
        self._expect(";")
        while self._take(";"):
            pass
        return Each(name or "", tuple(words), self._body())

    def _simple(self) -> ShellCommand:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        writes: list[Word] = []
        while (token := self._peek()) is not None:
            if isinstance(token, ShellOperator):
                if token not in (">", ">>", "<"):
                    break
                self.position += 1
                target = self._peek()
                if target is None or isinstance(target, ShellOperator):
                    raise NotUnderstood(f"nothing follows `{token}`")
                if token != "<":
                    writes.append(target)
            elif not words and (match := _ASSIGNMENT.match(_shown(token))) and token[0].kind == "text":
                assignments.append((match[1], _without(token, match.end())))
            else:
                words.append(token)
            self.position += 1
        token = self._peek()
        if isinstance(token, ShellOperator) and token in ("|", "<<", ";;", ">&"):
            raise NotUnderstood(f"`{token}` is not read")
        if isinstance(token, ShellOperator) and token == "(":
            raise NotUnderstood("functions are not read")
        return ShellCommand(tuple(words), tuple(assignments), tuple(writes))


def _without(word: Word, count: int) -> Word:
    """Return a word without its first characters, which are all plain text."""
    rest = list(word)
    while count > 0:
        part = rest.pop(0)
        if len(part.text) > count:
            rest.insert(0, part._replace(text=part.text[count:]))
        count -= len(part.text)
    return tuple(rest)
