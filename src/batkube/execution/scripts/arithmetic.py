"""Integer arithmetic of `$((…))` and `expr`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from batkube.execution.scripts.lexer import UnsupportedScript

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|\$\{?\w+\}?|<=|>=|==|!=|[-+*/%()<>])\s*")
_OPERATOR = re.compile(r"<=|>=|==|!=|[-+*/%()<>]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OCTAL = re.compile(r"-?0\d+")
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: int.__lt__,
    ast.Gt: int.__gt__,
    ast.LtE: int.__le__,
    ast.GtE: int.__ge__,
    ast.Eq: int.__eq__,
    ast.NotEq: int.__ne__,
}


def evaluate(text: str, value_of: Callable[[str], str | None]) -> str | None:
    """Return the value of an expression; None if a variable in it is unknown."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise UnsupportedScript(f"the expression `{text.strip()}` is not supported")
    values: list[str] = []
    for token in tokens:
        name = token.strip("${}")
        if not _NAME.fullmatch(name):
            values.append(token)
        elif (value := value_of(name)) is None:
            return None
        elif not value and token.startswith("$"):
            raise UnsupportedScript(f"`{token}` in an expression has no value")
        else:
            values.append(value or "0")
    total = _evaluate_node(_parse(values))
    if abs(total) >= 2**63:
        raise UnsupportedScript(f"the result of `{text.strip()}` is too large")
    return str(total)


def _parse(tokens: Iterable[str]) -> ast.expr:
    """Parse an expression with Python's parser, whose operators have the same precedence as the shell's."""
    words = []
    for token in tokens:
        if _OCTAL.fullmatch(token):
            raise UnsupportedScript(f"`{token}` is octal")
        words.append(token if _OPERATOR.fullmatch(token) else f"({require_integer(token, 'an expression')})")
    try:
        return ast.parse(" ".join(words), mode="eval").body
    except SyntaxError:
        raise UnsupportedScript("an expression is incomplete") from None


def _evaluate_node(node: ast.expr) -> int:
    """Return the value of an expression; division rounds towards zero."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate_node(operand)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in _COMPARISONS:
            return int(_COMPARISONS[type(comparison)](_evaluate_node(left), _evaluate_node(right)))
        case ast.BinOp(left=left, op=operator, right=right):
            return _apply(_evaluate_node(left), operator, _evaluate_node(right))
    raise UnsupportedScript("an expression is not supported")


def _apply(left: int, operator: ast.operator, right: int) -> int:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div() | ast.Mod() if right:
            quotient = abs(left) // abs(right) * (1 if left * right >= 0 else -1)
            return quotient if isinstance(operator, ast.Div) else left - quotient * right
    raise UnsupportedScript("a division by zero" if not right else "an expression is not supported")


def require_known(value: str | None) -> str:
    """Return a value on which the script depends; raise UnsupportedScript if it is unknown (None)."""
    if value is None:
        raise UnsupportedScript("it depends on an unknown value")
    return value


def require_integer(value: str | None, context: str) -> int:
    """Return an integer on which the script depends; raise UnsupportedScript if it is unknown or not an integer."""
    text = require_known(value)
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise UnsupportedScript(f"`{text}` is not an integer in {context}")
    return int(text)
