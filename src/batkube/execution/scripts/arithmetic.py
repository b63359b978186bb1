"""Sums of whole numbers, as `$((…))` and `expr` reckon them."""

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
    """Return the value of a sum; None where a variable in it is not known."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise UnsupportedScript(f"the sum `{text.strip()}` is not read")
    values: list[str] = []
    for token in tokens:
        name = token.strip("${}")
        if not _NAME.fullmatch(name):
            values.append(token)
        elif (value := value_of(name)) is None:
            return None
        elif not value and token.startswith("$"):
            raise UnsupportedScript(f"`{token}` has no value, and stands in a sum")
        else:
            values.append(value or "0")
    total = _evaluate_node(_parse(values))
    if abs(total) >= 2**63:
        raise UnsupportedScript(f"the sum `{text.strip()}` is too large")
    return str(total)


def _parse(tokens: Iterable[str]) -> ast.expr:
    """Return a sum as Python reads it: its operators bind as the shell's do."""
    words = []
    for token in tokens:
        if _OCTAL.fullmatch(token):
            raise UnsupportedScript(f"`{token}` is octal")
        words.append(token if _OPERATOR.fullmatch(token) else f"({require_integer(token, 'a sum')})")
    try:
        return ast.parse(" ".join(words), mode="eval").body
    except SyntaxError:
        raise UnsupportedScript("a sum is not complete") from None


def _evaluate_node(node: ast.expr) -> int:
    """Return what a sum comes to; a division is rounded towards zero."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate_node(operand)
        case ast.Compare(left=one, ops=[comparison], comparators=[other]) if type(comparison) in _COMPARISONS:
            return int(_COMPARISONS[type(comparison)](_evaluate_node(one), _evaluate_node(other)))
        case ast.BinOp(left=one, op=operator, right=other):
            return _apply(_evaluate_node(one), operator, _evaluate_node(other))
    raise UnsupportedScript("a sum is not read")


def _apply(one: int, operator: ast.operator, other: int) -> int:
    match operator:
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Mult():
            return one * other
        case ast.Div() | ast.Mod() if other:
            quotient = abs(one) // abs(other) * (1 if one * other >= 0 else -1)
            return quotient if isinstance(operator, ast.Div) else one - quotient * other
    raise UnsupportedScript("a division by zero" if not other else "a sum is not read")


def require_known(value: str | None) -> str:
    """Return a value that something depends on."""
    if value is None:
        raise UnsupportedScript("what happens depends on a value that nobody knows")
    return value


def require_integer(value: str | None, what: str) -> int:
    """Return a whole number that something depends on."""
    text = require_known(value)
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise UnsupportedScript(f"`{text}` is no number for {what}")
    return int(text)
