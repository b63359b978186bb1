"""From tokens to a tree, by the grammar of CEL (cel-go: parser/gen/CEL.g4), macros expanded as far as needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from batkube.api.cel.lexing import END, Token, tokens
from batkube.api.cel.trees import (
    NOWHERE,
    Constant,
    FunctionCall,
    Index,
    ListOf,
    Macro,
    MapOf,
    MessageOf,
    Name,
    Node,
    Select,
    SourceError,
)

_Part = TypeVar("_Part")

_RELATIONS = {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_RESERVED = frozenset(
    [
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    ]
)
#: Macros by how many variables and expressions they take.
_MACROS = {
    "all": ((1, 1), (2, 1)),
    "exists": ((1, 1), (2, 1)),
    "exists_one": ((1, 1),),
    "existsOne": ((2, 1),),
    "filter": ((1, 1),),
    "map": ((1, 1), (1, 2)),
    "transformList": ((2, 1), (2, 2)),
    "transformMap": ((2, 1), (2, 2)),
    "transformMapEntry": ((2, 1), (2, 2)),
    "optMap": ((1, 1),),
    "optFlatMap": ((1, 1),),
}
_EXPECTED = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_EXPECTED_FIELD = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
_OPENING, _CLOSING = "[{(.-!", ")]}"
_DEEPEST = 250
#: The longest expression (cel-go: parser/options.go, expressionSizeCodePointLimit).
_LONGEST = 100_000
#: What it says of a chain of operators or of members that is too long.
_TOO_LONG = "max recursion depth exceeded"
TOO_DEEP = f"expression recursion limit exceeded: {_DEEPEST}"
"""What cel-go says of an expression whose parts are nested too deeply."""


def parsed(text: str) -> Node:
    """Return the tree of an expression; raises SourceError."""
    if len(text) > _LONGEST:
        problem = f"expression code point size exceeds limit: size: {len(text)}, limit {_LONGEST}"
        raise SourceError("", [(NOWHERE, problem)])
    words, problems = tokens(text)
    parser = _ExpressionParser(words)
    try:
        tree = parser.whole()
    except _Wrong as problem:
        raise SourceError(text, [*problems, *parser.problems, (problem.at, problem.problem)]) from None
    if problems or parser.problems:
        raise SourceError(text, problems + parser.problems)
    return tree


class _Wrong(Exception):
    """What the parser cannot go on with."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem


class _ExpressionParser:
    """One pass over the tokens."""

    def __init__(self, words: list[Token]) -> None:
        self.tokens = words
        #: What could be skipped as superfluous, so that the rest could be read.
        self.problems: list[tuple[int, str]] = []
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def _is(self, symbol: str) -> bool:
        token = self.tokens[self.position]
        return token.kind == "symbol" and token.text == symbol

    def _take(self, symbol: str) -> Token | None:
        """Return the next token and go on if it is `symbol`."""
        if not self._is(symbol):
            return None
        self.position += 1
        return self.tokens[self.position - 1]

    def _need(self, symbol: str) -> Token:
        token = self._take(symbol)
        if token is not None:
            return token
        token, following = self.token, self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if token.kind == "end" and symbol in _CLOSING:
            raise self._error(f"missing '{symbol}' at '{token.text}'")
        if following.kind == "symbol" and following.text == symbol:
            self._skip(f"extraneous input '{token.text}' expecting '{symbol}'")
            return self._need(symbol)
        raise self._error(f"mismatched input '{token.text}' expecting '{symbol}'")

    def _skip(self, problem: str) -> None:
        """Note a superfluous token and go on behind it, as ANTLR does."""
        self.problems.append((self.token.at, f"Syntax error: {problem}"))
        self.position += 1

    def _error(self, problem: str) -> _Wrong:
        return _Wrong(self.token.at, f"Syntax error: {problem}")

    def whole(self) -> Node:
        """Parse the text to its end; what is left over is a fault."""
        node = self.expression()
        if self.token.kind != "end":
            raise self._error(f"extraneous input '{self.token.text}' expecting {END}")
        return node

    def expression(self) -> Node:
        """expr: conditionalOr ('?' conditionalOr ':' expr)?."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Wrong(NOWHERE, TOO_DEEP)
        condition = self._either()
        question = self._take("?")
        if question is not None:
            left = self._either()
            self._need(":")
            right = self.expression()
            condition = FunctionCall(question.at, "_?_:_", None, (condition, left, right))
        self.depth -= 1
        return condition

    def _chain(self, below: Callable[[], Node], operators: dict[str, str]) -> Node:
        """Parse operators of one rank, from left to right."""
        node, length = below(), 0
        while self.token.kind == "symbol" and self.token.text in operators:
            operator, length = self.token, length + 1
            if length > _DEEPEST:
                raise _Wrong(NOWHERE, _TOO_LONG)
            self.position += 1
            node = FunctionCall(operator.at, operators[operator.text], None, (node, below()))
        return node

    def _balanced(self, below: Callable[[], Node], symbol: str, function: str) -> Node:
        """Parse any number of sides that a logical operator joins into a tree that is as flat as can be."""
        nodes, places = [below()], []
        while (operator := self._take(symbol)) is not None:
            places.append(operator.at)
            nodes.append(below())
        return _joined(nodes, places, function)

    def _either(self) -> Node:
        return self._balanced(self._both, "||", "_||_")

    def _both(self) -> Node:
        return self._balanced(self._relation, "&&", "_&&_")

    def _relation(self) -> Node:
        return self._chain(self._sum, _RELATIONS)

    def _sum(self) -> Node:
        return self._chain(self._product, _SUMS)

    def _product(self) -> Node:
        return self._chain(self._unary, _PRODUCTS)

    def _unary(self) -> Node:
        for symbol, function in (("!", "!_"), ("-", "-_")):
            first = self._take(symbol)
            if first is None:
                continue
            count = 1
            while self._take(symbol):
                count += 1
            if symbol == "-" and count == 1 and self.token.kind == "literal" and _is_number(self.token.value):
                return self._members(Constant(first.at, -self._literal()))
            node = self._member()
            return node if count % 2 == 0 else FunctionCall(first.at, function, None, (node,))
        return self._member()

    def _literal(self) -> int:
        self.position += 1
        value: int = self.tokens[self.position - 1].value
        return value

    def _member(self) -> Node:
        return self._members(self._primary())

    def _members(self, node: Node) -> Node:
        for _ in range(_DEEPEST):
            dot = self._take(".")
            if dot is not None:
                node = self._after_dot(node, dot)
                continue
            bracket = self._take("[")
            if bracket is None:
                return node
            optional = self._take("?") is not None
            node = Index(bracket.at, node, self.expression(), optional)
            self._need("]")
        raise _Wrong(NOWHERE, _TOO_LONG)

    def _after_dot(self, node: Node, dot: Token) -> Node:
        optional = self._take("?") is not None
        token = self.token
        if token.kind not in ("word", "quoted"):
            raise self._error(f"no viable alternative at input '.{token.text}'")
        self.position += 1
        if token.kind == "quoted" or not self._is("("):
            return Select(dot.at, node, token.value or token.text, optional)
        opening = self._need("(")
        return self._call(token.text, opening.at, node, self._list(")"))

    def _list(self, closing: str) -> tuple[Node, ...]:
        items = []
        if not self._is(closing):
            items.append(self.expression())
            while self._take(","):
                items.append(self.expression())
        self._need(closing)
        return tuple(items)

    def _primary(self) -> Node:
        token = self.token
        if token.kind == "literal":
            self.position += 1
            return Constant(token.at, token.value)
        if self._take("("):
            node = self.expression()
            self._need(")")
            return node
        if self._take("["):
            return ListOf(token.at, *self._literal_parts("]", self.expression))
        if self._take("{"):
            return MapOf(token.at, *self._literal_parts("}", self._entry))
        self._take(".")
        token = self.token
        if token.kind != "word":
            return self._unexpected(token)
        self.position += 1
        if token.text in _RESERVED:
            raise _Wrong(token.at, f"reserved identifier: {token.text}")
        length = self._message_name_length()
        if length:
            return self._message(token.text, length)
        opening = self._take("(")
        if opening is not None:
            return self._call(token.text, opening.at, None, self._list(")"))
        return Name(token.at, token.text)

    def _unexpected(self, token: Token) -> Node:
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        starts = following.kind in ("word", "literal") or (following.kind == "symbol" and following.text in _OPENING)
        if token.kind == "end" or not starts:
            raise self._error(f"mismatched input '{token.text}' expecting {_EXPECTED}")
        self._skip(f"extraneous input '{token.text}' expecting {_EXPECTED}")
        return self._primary()

    def _literal_parts(self, closing: str, read: Callable[[], _Part]) -> tuple[tuple[_Part, ...], tuple[bool, ...]]:
        """Parse what stands in a literal of a list, a map or a message, and whether a question mark is before each."""
        parts, optional = [], []
        while not self._is(closing):
            optional.append(self._take("?") is not None)
            parts.append(read())
            if not self._take(","):
                break
        self._need(closing)
        return tuple(parts), tuple(optional)

    def _entry(self) -> tuple[Node, Node]:
        key = self.expression()
        self._need(":")
        return key, self.expression()

    def _field(self) -> tuple[str, Node, int]:
        name = self.token
        if name.kind not in ("word", "quoted"):
            raise self._error(f"mismatched input '{name.text}' expecting {_EXPECTED_FIELD}")
        self.position += 1
        colon = self._need(":")
        return name.value or name.text, self.expression(), colon.at

    def _message_name_length(self) -> int:
        """Return how many tokens after a first word lead to the brace of a message (`.spec{`); 0 if none does."""
        at = self.position
        while self.tokens[at].text == "." and self.tokens[at + 1].kind == "word":
            at += 2
        token = self.tokens[at]
        return at + 1 - self.position if token.kind == "symbol" and token.text == "{" else 0

    def _message(self, first: str, length: int) -> Node:
        name = first + "".join(token.text for token in self.tokens[self.position : self.position + length - 1])
        self.position += length
        return MessageOf(self.tokens[self.position - 1].at, name, *self._literal_parts("}", self._field))

    # Macros

    def _call(self, function: str, at: int, target: Node | None, arguments: tuple[Node, ...]) -> Node:
        if function == "has" and target is None:
            if len(arguments) != 1 or not isinstance(arguments[0], Select):
                raise _Wrong(arguments[0].at if arguments else at, "invalid argument to has() macro")
            selected = arguments[0]
            return Select(at, selected.operand, selected.field, tests=True)
        for variables, expressions in _MACROS.get(function, ()):
            if target is not None and len(arguments) == variables + expressions:
                names = tuple(self._variable(argument) for argument in arguments[:variables])
                return Macro(at, function, target, names, arguments[variables:])
        return FunctionCall(at, function, target, arguments)

    def _variable(self, node: Node) -> str:
        if not isinstance(node, Name):
            raise _Wrong(node.at, "argument must be a simple name")
        return node.name


def _joined(nodes: list[Node], places: list[int], function: str) -> Node:
    """Join nodes by operators at `places`, as cel-go balances them (parser/helper.go)."""
    if not places:
        return nodes[0]
    middle = len(places) // 2
    left = _joined(nodes[: middle + 1], places[:middle], function)
    right = _joined(nodes[middle + 1 :], places[middle + 1 :], function)
    return FunctionCall(places[middle], function, None, (left, right))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
