"""Sums of whole numbers, as `$((…))` and `expr` reckon them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from batkube.execution.scripts.words import NotUnderstood

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


def calculated(text: str, value_of: Callable[[str], str | None]) -> str | None:
    """Return the value of a sum; None where a variable in it is not known."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise NotUnderstood(f"the sum `{text.strip()}` is not read")
    values: list[str] = []
    for token in tokens:
        name = token.strip("${}")
        if not _NAME.fullmatch(name):
            values.append(token)
        elif (value := value_of(name)) is None:
            return None
        elif not value and token.startswith("$"):
            raise NotUnderstood(f"`{token}` has no value, and stands in a sum")
        else:
            values.append(value or "0")
    total = _value(_tree(values))
    if abs(total) >= 2**63:
        raise NotUnderstood(f"the sum `{text.strip()}` is too large")
    return str(total)


def _tree(tokens: Iterable[str]) -> ast.expr:
    """Return a sum as Python reads it: its operators bind as the shell's do."""
    words = []
    for token in tokens:
        if _OCTAL.fullmatch(token):
            raise NotUnderstood(f"`{token}` is octal")
        words.append(token if _OPERATOR.fullmatch(token) else f"({integer(token, 'a sum')})")
    try:
        return ast.parse(" ".join(words), mode="eval").body
    except SyntaxError:
        raise NotUnderstood("a sum is not complete") from None


def _value(node: ast.expr) -> int:
    """Return what a sum comes to; a division is rounded towards zero."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Compare(left=one, ops=[comparison], comparators=[other]) if type(comparison) in _COMPARISONS:
            return int(_COMPARISONS[type(comparison)](_value(one), _value(other)))
        case ast.BinOp(left=one, op=operator, right=other):
            return _reckoned(_value(one), operator, _value(other))
    raise NotUnderstood("a sum is not read")


def _reckoned(one: int, operator: ast.operator, other: int) -> int:
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
    raise NotUnderstood("a division by zero" if not other else "a sum is not read")


def known(value: str | None) -> str:
    """Return a value that something depends on."""
    if value is None:
        raise NotUnderstood("what happens depends on a value that nobody knows")
    return value


def integer(value: str | None, what: str) -> int:
    """Return a whole number that something depends on."""
    text = known(value)
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise NotUnderstood(f"`{text}` is no number for {what}")
    return int(text)
