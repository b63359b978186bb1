"""Syntax trees of expressions, and errors that point into the source text."""

from __future__ import annotations

from typing import Any

import msgspec

#: The maximum number of reported errors per expression (cel-go: common/errors.go).
_PROBLEMS_MAX = 100


class Unsupported(Exception):
    """The expression uses a CEL feature that this interpreter does not support."""


class SourceError(Exception):
    """The expression is invalid; `str` gives cel-go's messages, each with a line that points to the position."""

    def __init__(self, text: str, problems: list[tuple[int, str]]) -> None:
        lines = [_format_problem(text, at, problem) for at, problem in sorted(problems)[:_PROBLEMS_MAX]]
        if len(problems) > _PROBLEMS_MAX:
            lines.append(f"{len(problems) - _PROBLEMS_MAX} more errors were truncated")
        super().__init__("\n".join(lines))
        #: The positions and messages of the errors.
        self.problems = problems


NO_POSITION = -1
"""The position of errors in the expression as a whole."""


def _format_problem(text: str, at: int, problem: str) -> str:
    if at == NO_POSITION:
        return f"ERROR: <input>:-1:0: {problem}"
    if not text:
        return f"ERROR: <input>:1:0: {problem}"
    lines = text.split("\n")
    number, column = 0, at
    while number < len(lines) - 1 and column > len(lines[number]):
        column -= len(lines[number]) + 1
        number += 1
    return f"ERROR: <input>:{number + 1}:{column + 1}: {problem}\n | {lines[number]}\n | {'.' * column}^"


class Node(msgspec.Struct, frozen=True):
    """A node of the syntax tree; `at` is the position at which cel-go reports errors in it."""

    at: int


class Constant(Node, frozen=True):
    """A constant."""

    value: Any


class Identifier(Node, frozen=True):
    """A variable or a type."""

    name: str


class Select(Node, frozen=True):
    """`operand.field`, `operand.?field`, or with `test_only` the macro `has(operand.field)`."""

    operand: Node
    field: str
    optional: bool = False
    test_only: bool = False


class Index(Node, frozen=True):
    """`operand[index]` or `operand[?index]`."""

    operand: Node
    index: Node
    optional: bool = False


class FunctionCall(Node, frozen=True):
    """A call of a function or an operator (by cel-go's name: `_+_`); `target` is the receiver of a method call."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]


class ListLiteral(Node, frozen=True):
    """`[a, ?b]`; items after a question mark are omitted if they have no value."""

    items: tuple[Node, ...]
    optional: tuple[bool, ...]


class MapLiteral(Node, frozen=True):
    """`{key: value}`."""

    entries: tuple[tuple[Node, Node], ...]
    optional: tuple[bool, ...]


class MessageLiteral(Node, frozen=True):
    """`Object.spec{field: value, ?other: optional}`: a message of a named type."""

    name: str
    #: Each with the position of its colon, at which cel-go reports errors in it.
    fields: tuple[tuple[str, Node, int], ...]
    optional: tuple[bool, ...]


class MacroCall(Node, frozen=True):
    """`target.all(x, body)` and other macros: `body` is evaluated for each element, bound to `variables`."""

    name: str
    target: Node
    variables: tuple[str, ...]
    #: One expression, or a filter and a result.
    bodies: tuple[Node, ...]
