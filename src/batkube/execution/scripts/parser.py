"""Parses the subset of the shell language that scripts in pods mostly use (POSIX: Shell Grammar).

It covers commands in sequence and in the background, `&&` and `||`, `if`, `while`, `until`, `for`, groups, subshells,
quotes, `$NAME`, `${NAME:-default}`, `$(command)` and `$((expression))`. Everything else (pipes, functions, `case`,
here-documents) raises `UnsupportedScript`, as do syntax errors and constructs in which shells differ.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass
from typing import Literal

from batkube.execution.scripts.lexer import (
    STDERR_TO_FILE,
    STDOUT_DISCARDED,
    ShellOperator,
    Token,
    UnsupportedScript,
    Word,
    tokenize,
)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A simple command, with the files from and to which it is redirected."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    reads: tuple[Word, ...] = ()
    writes: tuple[Word, ...] = ()
    #: Whether its standard output is redirected.
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Subshell:
    """`( commands )` or `command &`: its changes of variables and options do not affect the parent."""

    body: Statement
    in_background: bool = False


@dataclass(frozen=True, slots=True)
class AndOr:
    """`first && second`, `first || second`."""

    first: Statement
    operator: Literal["&&", "||"]
    second: Statement


@dataclass(frozen=True, slots=True)
class Negation:
    """`! command`."""

    body: Statement


@dataclass(frozen=True, slots=True)
class IfStatement:
    """`if`, with its `elif` and `else` branches."""

    branches: tuple[tuple[CommandList, CommandList], ...]
    otherwise: CommandList | None


@dataclass(frozen=True, slots=True)
class WhileLoop:
    """`while` and `until`."""

    condition: CommandList
    body: CommandList
    until: bool


@dataclass(frozen=True, slots=True)
class ForLoop:
    """`for name in words`."""

    name: str
    words: tuple[Word, ...]
    body: CommandList


@dataclass(frozen=True, slots=True)
class CommandList:
    """A sequence of statements."""

    nodes: tuple[Statement, ...]


Statement = ShellCommand | Subshell | AndOr | Negation | IfStatement | WhileLoop | ForLoop | CommandList

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_CLOSING_KEYWORDS = frozenset(("then", "elif", "else", "fi", "do", "done", "}", ")"))
_UNSUPPORTED_KEYWORDS = frozenset(("case", "function", "select", "time", "coproc"))


@functools.lru_cache(maxsize=256)
def parse(text: str) -> CommandList:
    """Parse a whole script, including parts that are never executed."""
    parser = _Parser(tokenize(text))
    script = parser.command_list()
    if parser.position < len(parser.tokens):
        raise UnsupportedScript(f"{_token_text(parser.tokens[parser.position])} is not a command")
    for token in parser.tokens:
        for part in () if isinstance(token, ShellOperator) else token:
            if part.kind == "command":
                parse(part.text)
    return script


def unquoted_text(token: Token | None) -> str | None:
    """Return a word's text if all of it is unquoted, as a keyword must be."""
    if token is None or isinstance(token, ShellOperator):
        return None
    if any(part.kind != "text" or part.is_quoted for part in token):
        return None
    return "".join(part.text for part in token)


def _token_text(token: Token) -> str:
    return str(token) if isinstance(token, ShellOperator) else "".join(part.text for part in token)


class _Parser:
    """A recursive descent parser of the tokens of a script."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0

    def _peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _take(self, keyword: str) -> bool:
        token = self._peek()
        if token == keyword if isinstance(token, ShellOperator) else unquoted_text(token) == keyword:
            self.position += 1
            return True
        return False

    def _expect(self, keyword: str) -> None:
        if not self._take(keyword):
            raise UnsupportedScript(f"`{keyword}` is missing")

    def _skip_lines(self) -> None:
        while self._take("\n"):
            pass

    def _is_at_end(self) -> bool:
        """Return whether the current sequence of commands ends here."""
        token = self._peek()
        return token is None or token == ShellOperator(")") or unquoted_text(token) in _CLOSING_KEYWORDS

    def command_list(self) -> CommandList:
        """Parse commands up to the end, or to the keyword that closes the enclosing statement."""
        nodes: list[Statement] = []
        while True:
            self._skip_lines()
            if self._is_at_end():
                return CommandList(tuple(nodes))
            node = self._and_or()
            if self._take("&"):
                node = Subshell(node, in_background=True)
            elif not self._take(";") and not self._take("\n") and not self._is_at_end():
                raise UnsupportedScript(f"`{_token_text(self.tokens[self.position])}` is not supported")
            nodes.append(node)

    def _nonempty_list(self) -> CommandList:
        """Parse a sequence of at least one command."""
        sequence = self.command_list()
        if not sequence.nodes:
            raise UnsupportedScript("a command is missing")
        return sequence

    def _and_or(self) -> Statement:
        node = self._command()
        while True:
            if self._take("&&"):
                operator: Literal["&&", "||"] = "&&"
            elif self._take("||"):
                operator = "||"
            else:
                return node
            self._skip_lines()
            node = AndOr(node, operator, self._command())

    def _command(self) -> Statement:
        keyword = unquoted_text(self._peek())
        if keyword in _UNSUPPORTED_KEYWORDS:
            raise UnsupportedScript(f"`{keyword}` is not supported")
        if self._take("!"):
            if unquoted_text(self._peek()) == "!":
                raise UnsupportedScript("`! !` differs between shells")
            return Negation(self._command())
        if self._take("if"):
            return self._if_statement()
        if keyword in ("while", "until"):
            self.position += 1
            condition = self._nonempty_list()
            return WhileLoop(condition, self._body(), keyword == "until")
        if self._take("for"):
            return self._for_loop()
        if self._take("("):
            inside = Subshell(self._nonempty_list())
            self._expect(")")
            return inside
        if self._take("{"):
            group = self._nonempty_list()
            self._expect("}")
            return group
        return self._simple_command()

    def _if_statement(self) -> IfStatement:
        branches = []
        while True:
            test = self._nonempty_list()
            self._expect("then")
            branches.append((test, self._nonempty_list()))
            if not self._take("elif"):
                break
        otherwise = self._nonempty_list() if self._take("else") else None
        self._expect("fi")
        return IfStatement(tuple(branches), otherwise)

    def _body(self) -> CommandList:
        self._expect("do")
        body = self._nonempty_list()
        self._expect("done")
        return body

    def _for_loop(self) -> ForLoop:
        name = unquoted_text(self._peek()) or ""
        self.position += 1
        if not name.isidentifier() or not name.isascii():
            raise UnsupportedScript(f"`for {name}` is not supported")
        self._expect("in")
        words = []
        while (token := self._peek()) is not None and not isinstance(token, ShellOperator):
            words.append(token)
            self.position += 1
        if not self._take(";"):
            self._expect("\n")
        self._skip_lines()
        return ForLoop(name, tuple(words), self._body())

    def _simple_command(self) -> ShellCommand:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        reads: list[Word] = []
        writes: list[Word] = []
        start, is_silent = self.position, False
        while (token := self._peek()) is not None:
            if isinstance(token, ShellOperator):
                if token not in (">", ">>", "<", STDOUT_DISCARDED, STDERR_TO_FILE):
                    break
                is_silent = is_silent or token in (">", ">>", STDOUT_DISCARDED)
                if token in (">", ">>", "<"):
                    (reads if token == "<" else writes).append(self._target())
                elif token == STDERR_TO_FILE:
                    self.position += 1
                    writes.append(self._target())
            elif not words and (match := _ASSIGNMENT.match(_unquoted_start(token))):
                assignments.append((match[1], _drop_prefix(token, match.end())))
            else:
                words.append(token)
            self.position += 1
        if self.position == start:
            raise UnsupportedScript(
                f"{'the end' if token is None else f'`{_token_text(token)}`'} is in the place of a command"
            )
        if isinstance(token, ShellOperator) and token in ("|", "<<", ";;", ">&", "<&", "&>", "((", "("):
            raise UnsupportedScript("functions are not supported" if token == "(" else f"`{token}` is not supported")
        return ShellCommand(tuple(words), tuple(assignments), tuple(reads), tuple(writes), is_silent)

    def _target(self) -> Word:
        """Parse the file name after a redirection operator."""
        operator = self._peek()
        self.position += 1
        target = self._peek()
        if target is None or isinstance(target, ShellOperator):
            raise UnsupportedScript(f"nothing follows `{operator}`")
        return target


def _unquoted_start(word: Word) -> str:
    """Return the unquoted text at the beginning of a word."""
    plain = itertools.takewhile(lambda part: part.kind == "text" and not part.is_quoted, word)
    return "".join(part.text for part in plain)


def _drop_prefix(word: Word, count: int) -> Word:
    """Return a word without its first characters, which are literal text."""
    rest = list(word)
    while count > 0:
        part = rest.pop(0)
        if len(part.text) > count:
            rest.insert(0, part._replace(text=part.text[count:]))
        count -= len(part.text)
    return tuple(rest)
