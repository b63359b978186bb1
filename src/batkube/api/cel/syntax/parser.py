"""The parser: from tokens to a syntax tree, by the grammar of CEL (cel-go: parser/gen/CEL.g4), with macros."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from batkube.api.cel.syntax.lexer import END, Token, tokenize
from batkube.api.cel.syntax.nodes import (
    NO_POSITION,
    Constant,
    FunctionCall,
    Identifier,
    Index,
    ListLiteral,
    MacroCall,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    SourceError,
)

_Part = TypeVar("_Part")

_RELATIONAL_OPERATORS = {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_ADDITIVE_OPERATORS = {"+": "_+_", "-": "_-_"}
_MULTIPLICATIVE_OPERATORS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_RESERVED = frozenset(
    [
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    ]
)
#: Macros by their numbers of variables and expressions.
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
_OPENING_SYMBOLS, _CLOSING_SYMBOLS = "[{(.-!", ")]}"
_DEPTH_MAX = 250
#: The maximum length of an expression (cel-go: parser/options.go, expressionSizeCodePointLimit).
_LENGTH_MAX = 100_000
#: cel-go's error for a chain of operators or members that is too long.
_CHAIN_TOO_LONG = "max recursion depth exceeded"
TOO_DEEP = f"expression recursion limit exceeded: {_DEPTH_MAX}"
"""cel-go's error for an expression that is nested too deeply."""


def parse(text: str) -> Node:
    """Parse an expression; raises SourceError."""
    if len(text) > _LENGTH_MAX:
        problem = f"expression code point size exceeds limit: size: {len(text)}, limit {_LENGTH_MAX}"
        raise SourceError("", [(NO_POSITION, problem)])
    words, problems = tokenize(text)
    parser = _ExpressionParser(words)
    try:
        tree = parser.parse()
    except _ParseError as problem:
        raise SourceError(text, [*problems, *parser.problems, (problem.at, problem.problem)]) from None
    if problems or parser.problems:
        raise SourceError(text, problems + parser.problems)
    return tree


class _ParseError(Exception):
    """A syntax error from which the parser cannot recover."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem


class _ExpressionParser:
    """The state of one recursive-descent parse."""

    def __init__(self, words: list[Token]) -> None:
        self.tokens = words
        #: Errors from which the parser recovered by skipping a superfluous token.
        self.problems: list[tuple[int, str]] = []
        self.position = 0
        self.depth = 0

    @property
    def next_token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def _next_is(self, symbol: str) -> bool:
        token = self.tokens[self.position]
        return token.kind == "symbol" and token.text == symbol

    def _accept(self, symbol: str) -> Token | None:
        """Consume and return the next token if it is `symbol`."""
        if not self._next_is(symbol):
            return None
        self.position += 1
        return self.tokens[self.position - 1]

    def _expect(self, symbol: str) -> Token:
        token = self._accept(symbol)
        if token is not None:
            return token
        token, following = self.next_token, self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if token.kind == "end" and symbol in _CLOSING_SYMBOLS:
            raise self._parse_error(f"missing '{symbol}' at '{token.text}'")
        if following.kind == "symbol" and following.text == symbol:
            self._skip_token(f"extraneous input '{token.text}' expecting '{symbol}'")
            return self._expect(symbol)
        raise self._parse_error(f"mismatched input '{token.text}' expecting '{symbol}'")

    def _skip_token(self, problem: str) -> None:
        """Report and skip a superfluous token, as ANTLR's single-token deletion does."""
        self.problems.append((self.next_token.at, f"Syntax error: {problem}"))
        self.position += 1

    def _parse_error(self, problem: str) -> _ParseError:
        return _ParseError(self.next_token.at, f"Syntax error: {problem}")

    def parse(self) -> Node:
        """Parse the whole text; anything after the expression is an error."""
        node = self.expression()
        if self.next_token.kind != "end":
            raise self._parse_error(f"extraneous input '{self.next_token.text}' expecting {END}")
        return node

    def expression(self) -> Node:
        """expr: conditionalOr ('?' conditionalOr ':' expr)?."""
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise _ParseError(NO_POSITION, TOO_DEEP)
        condition = self._logical_or()
        question = self._accept("?")
        if question is not None:
            left = self._logical_or()
            self._expect(":")
            right = self.expression()
            condition = FunctionCall(question.at, "_?_:_", None, (condition, left, right))
        self.depth -= 1
        return condition

    def _left_associative(self, below: Callable[[], Node], operators: dict[str, str]) -> Node:
        """Parse left-associative operators of one precedence."""
        node, length = below(), 0
        while self.next_token.kind == "symbol" and self.next_token.text in operators:
            operator, length = self.next_token, length + 1
            if length > _DEPTH_MAX:
                raise _ParseError(NO_POSITION, _CHAIN_TOO_LONG)
            self.position += 1
            node = FunctionCall(operator.at, operators[operator.text], None, (node, below()))
        return node

    def _logical_operator(self, below: Callable[[], Node], symbol: str, function: str) -> Node:
        """Parse operands joined by a logical operator, to a balanced tree."""
        nodes, places = [below()], []
        while (operator := self._accept(symbol)) is not None:
            places.append(operator.at)
            nodes.append(below())
        return _balanced_tree(nodes, places, function)

    def _logical_or(self) -> Node:
        return self._logical_operator(self._logical_and, "||", "_||_")

    def _logical_and(self) -> Node:
        return self._logical_operator(self._relation, "&&", "_&&_")

    def _relation(self) -> Node:
        return self._left_associative(self._additive, _RELATIONAL_OPERATORS)

    def _additive(self) -> Node:
        return self._left_associative(self._multiplicative, _ADDITIVE_OPERATORS)

    def _multiplicative(self) -> Node:
        return self._left_associative(self._unary, _MULTIPLICATIVE_OPERATORS)

    def _unary(self) -> Node:
        for symbol, function in (("!", "!_"), ("-", "-_")):
            first = self._accept(symbol)
            if first is None:
                continue
            count = 1
            while self._accept(symbol):
                count += 1
            if symbol == "-" and count == 1 and self.next_token.kind == "literal" and _is_number(self.next_token.value):
                return self._postfix(Constant(first.at, -self._literal()))
            node = self._member()
            return node if count % 2 == 0 else FunctionCall(first.at, function, None, (node,))
        return self._member()

    def _literal(self) -> int:
        self.position += 1
        value: int = self.tokens[self.position - 1].value
        return value

    def _member(self) -> Node:
        return self._postfix(self._primary())

    def _postfix(self, node: Node) -> Node:
        for _ in range(_DEPTH_MAX):
            dot = self._accept(".")
            if dot is not None:
                node = self._after_dot(node, dot)
                continue
            bracket = self._accept("[")
            if bracket is None:
                return node
            optional = self._accept("?") is not None
            node = Index(bracket.at, node, self.expression(), optional)
            self._expect("]")
        raise _ParseError(NO_POSITION, _CHAIN_TOO_LONG)

    def _after_dot(self, node: Node, dot: Token) -> Node:
        optional = self._accept("?") is not None
        token = self.next_token
        if token.kind not in ("word", "quoted"):
            raise self._parse_error(f"no viable alternative at input '.{token.text}'")
        self.position += 1
        if token.kind == "quoted" or not self._next_is("("):
            return Select(dot.at, node, token.value or token.text, optional)
        opening = self._expect("(")
        return self._call(token.text, opening.at, node, self._expression_list(")"))

    def _expression_list(self, closing: str) -> tuple[Node, ...]:
        items = []
        if not self._next_is(closing):
            items.append(self.expression())
            while self._accept(","):
                items.append(self.expression())
        self._expect(closing)
        return tuple(items)

    def _primary(self) -> Node:
        token = self.next_token
        if token.kind == "literal":
            self.position += 1
            return Constant(token.at, token.value)
        if self._accept("("):
            node = self.expression()
            self._expect(")")
            return node
        if self._accept("["):
            return ListLiteral(token.at, *self._literal_elements("]", self.expression))
        if self._accept("{"):
            return MapLiteral(token.at, *self._literal_elements("}", self._entry))
        self._accept(".")
        token = self.next_token
        if token.kind != "word":
            return self._skip_or_fail(token)
        self.position += 1
        if token.text in _RESERVED:
            raise _ParseError(token.at, f"reserved identifier: {token.text}")
        length = self._message_name_length()
        if length:
            return self._message(token.text, length)
        opening = self._accept("(")
        if opening is not None:
            return self._call(token.text, opening.at, None, self._expression_list(")"))
        return Identifier(token.at, token.text)

    def _skip_or_fail(self, token: Token) -> Node:
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        starts = following.kind in ("word", "literal") or (
            following.kind == "symbol" and following.text in _OPENING_SYMBOLS
        )
        if token.kind == "end" or not starts:
            raise self._parse_error(f"mismatched input '{token.text}' expecting {_EXPECTED}")
        self._skip_token(f"extraneous input '{token.text}' expecting {_EXPECTED}")
        return self._primary()

    def _literal_elements(self, closing: str, read: Callable[[], _Part]) -> tuple[tuple[_Part, ...], tuple[bool, ...]]:
        """Parse the elements of a list, map or message literal, and whether each has a question mark."""
        parts, optional = [], []
        while not self._next_is(closing):
            optional.append(self._accept("?") is not None)
            parts.append(read())
            if not self._accept(","):
                break
        self._expect(closing)
        return tuple(parts), tuple(optional)

    def _entry(self) -> tuple[Node, Node]:
        key = self.expression()
        self._expect(":")
        return key, self.expression()

    def _field(self) -> tuple[str, Node, int]:
        name = self.next_token
        if name.kind not in ("word", "quoted"):
            raise self._parse_error(f"mismatched input '{name.text}' expecting {_EXPECTED_FIELD}")
        self.position += 1
        colon = self._expect(":")
        return name.value or name.text, self.expression(), colon.at

    def _message_name_length(self) -> int:
        """Return the number of tokens between a first word and the brace of a message (`.spec{`); 0 without a brace."""
        at = self.position
        while self.tokens[at].text == "." and self.tokens[at + 1].kind == "word":
            at += 2
        token = self.tokens[at]
        return at + 1 - self.position if token.kind == "symbol" and token.text == "{" else 0

    def _message(self, first: str, length: int) -> Node:
        name = first + "".join(token.text for token in self.tokens[self.position : self.position + length - 1])
        self.position += length
        return MessageLiteral(self.tokens[self.position - 1].at, name, *self._literal_elements("}", self._field))

    # Macros

    def _call(self, function: str, at: int, target: Node | None, arguments: tuple[Node, ...]) -> Node:
        if function == "has" and target is None:
            if len(arguments) != 1 or not isinstance(arguments[0], Select):
                raise _ParseError(arguments[0].at if arguments else at, "invalid argument to has() macro")
            selected = arguments[0]
            return Select(at, selected.operand, selected.field, test_only=True)
        for variables, expressions in _MACROS.get(function, ()):
            if target is not None and len(arguments) == variables + expressions:
                names = tuple(self._variable(argument) for argument in arguments[:variables])
                return MacroCall(at, function, target, names, arguments[variables:])
        return FunctionCall(at, function, target, arguments)

    def _variable(self, node: Node) -> str:
        if not isinstance(node, Identifier):
            raise _ParseError(node.at, "argument must be a simple name")
        return node.name


def _balanced_tree(nodes: list[Node], places: list[int], function: str) -> Node:
    """Join nodes by operators at `places` to a balanced tree, as cel-go does (parser/helper.go)."""
    if not places:
        return nodes[0]
    middle = len(places) // 2
    left = _balanced_tree(nodes[: middle + 1], places[:middle], function)
    right = _balanced_tree(nodes[middle + 1 :], places[middle + 1 :], function)
    return FunctionCall(places[middle], function, None, (left, right))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
