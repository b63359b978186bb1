"""Sums of whole numbers, as `$((…))` and `expr` reckon them."""

from __future__ import annotations

import re
from collections.abc import Callable

from batkube.execution.scripts.words import NotUnderstood

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|\$\{?\w+\}?|<=|>=|==|!=|[-+*/%()<>])\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": int.__lt__,
    ">": int.__gt__,
    "<=": int.__le__,
    ">=": int.__ge__,
    "==": int.__eq__,
    "!=": int.__ne__,
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
    total = _Sum(values).value()
    if abs(total) >= 2**63:
        raise NotUnderstood(f"the sum `{text.strip()}` is too large")
    return str(total)


class _Sum:
    """Reckons by precedence: products first, division towards zero."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def value(self) -> int:
        """Return the value of the whole."""
        value = self._comparison()
        if self._position != len(self._tokens):
            raise NotUnderstood("a sum is not read")
        return value

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise NotUnderstood("a sum is not complete")
        self._position += 1
        return token

    def _comparison(self) -> int:
        value = self._addition()
        if (compare := _COMPARISONS.get(self._peek())) is not None:
            self._take()
            return int(compare(value, self._addition()))
        return value

    def _addition(self) -> int:
        value = self._product()
        while self._peek() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        return value

    def _product(self) -> int:
        value = self._primary()
        while self._peek() in ("*", "/", "%"):
            operator, other = self._take(), self._primary()
            if operator == "*":
                value *= other
            elif other == 0:
                raise NotUnderstood("a division by zero")
            else:
                quotient = abs(value) // abs(other) * (1 if value * other >= 0 else -1)
                value = quotient if operator == "/" else value - quotient * other
        return value

    def _primary(self) -> int:
        token = self._take()
        if token == "-":
            return -self._primary()
        if token != "(":
            if re.fullmatch(r"-?0\d+", token):
                raise NotUnderstood(f"`{token}` is octal")
            return integer(token, "a sum")
        value = self._comparison()
        if self._take() != ")":
            raise NotUnderstood("a sum is not closed")
        return value


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
