"""Label selectors, parsed from either of their two notations.

A query has a text (`app in (a,b),!tier`), an object a LabelSelector (`matchLabels`, `matchExpressions`). Both become a
`LabelSelector`, a list of requirements that must all hold. A text that does not parse is rejected with kube-apiserver's
message (Kubernetes: apimachinery/pkg/labels/selector.go).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from batkube.kernel.numbers import parse_int
from batkube.text.go_format import go_quote
from batkube.text.label_syntax import label_value, qualified_name


class SelectorError(ValueError):
    """The text or object is not a valid selector; the message is kube-apiserver's."""


class Operator(enum.Enum):
    """The operator of a requirement; the value is its name in selector texts and messages."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


def _integer(text: str) -> int | None:
    """Return the int64 that Go's strconv.ParseInt would read, or None."""
    if not _is_integer(text):
        return None
    number = parse_int(text)
    return number if number is not None and -(2**63) <= number < 2**63 else None


_is_integer = re.compile(r"[+-]?[0-9]+").fullmatch


def _compare_integers(value: str | None, bound: str, greater: bool) -> bool:
    number, limit = _integer(value or ""), _integer(bound)
    return number is not None and limit is not None and (number > limit if greater else number < limit)


#: Up to this many values a tuple is searched faster than a set.
_FEW_VALUES = 8
#: Tests whether a label's value (None: the object does not have the label) satisfies a requirement.
_FITS: dict[Operator, Callable[[str | None, Any], bool]] = {
    Operator.IN: lambda value, values: value in values,
    Operator.EQUALS: lambda value, values: value in values,
    Operator.DOUBLE_EQUALS: lambda value, values: value in values,
    Operator.NOT_IN: lambda value, values: value not in values,
    Operator.NOT_EQUALS: lambda value, values: value not in values,
    Operator.GREATER_THAN: lambda value, values: _compare_integers(value, values[0], greater=True),
    Operator.LESS_THAN: lambda value, values: _compare_integers(value, values[0], greater=False),
    Operator.EXISTS: lambda value, _: value is not None,
    Operator.DOES_NOT_EXIST: lambda value, _: value is None,
}


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text that kube-apiserver writes into `status.selector` of a Scale."""
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return "!" + self.key
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator.value} ({','.join(sorted(self.values))})"
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                return f"{self.key}{'>' if self.operator is Operator.GREATER_THAN else '<'}{self.values[0]}"
            case _:
                return f"{self.key}{self.operator.value}{self.values[0]}"


def _as_collection(values: tuple[str, ...]) -> Collection[str]:
    """Return the values as a set, or as a tuple if they are few: that is faster to search."""
    return frozenset(values) if len(values) > _FEW_VALUES else values


class LabelSelector:
    """Requirements that must all hold; an empty selector selects everything."""

    __slots__ = ("_tests", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self._tests = [(item.key, _FITS[item.operator], _as_collection(item.values)) for item in self.requirements]

    def __bool__(self) -> bool:
        """Return whether the selector has any requirement."""
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether an object with these labels is selected."""
        get = (labels or {}).get
        for key, fits, values in self._tests:  # noqa: SIM110 - runs for every object listed; `all` costs twice
            if not fits(get(key), values):
                return False
        return True


class _Nothing(LabelSelector):
    """Selects no object, as a missing LabelSelector does."""

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        return False


EVERYTHING = LabelSelector()
NOTHING = _Nothing()

#: The operators of a LabelSelector's matchExpressions.
OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def selector_of(value: Mapping[str, Any] | None) -> LabelSelector:
    """Return the selector of a LabelSelector object; None selects nothing, an empty object everything."""
    if value is None:
        return NOTHING
    requirements = [
        _requirement(key, Operator.EQUALS, (text,)) for key, text in (value.get("matchLabels") or {}).items()
    ]
    for expression in value.get("matchExpressions") or ():
        operator = OBJECT_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise SelectorError(f"{go_quote(expression.get('operator', ''))} is not a valid label selector operator")
        requirements.append(_requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return LabelSelector(requirements)


def parse_labels(text: str) -> LabelSelector:
    """Parse the selector of a query, such as `app in (a,b),!tier`; raise SelectorError."""
    return LabelSelector(_SelectorParser(text).requirements()) if text else EVERYTHING


def _requirement(key: str, operator: Operator, values: tuple[str, ...]) -> Requirement:
    """Validate and return a requirement (Kubernetes: labels.NewRequirement)."""
    problems = [f"key: Invalid value: {go_quote(key)}: {'; '.join(bad)}"] if (bad := qualified_name(key)) else []
    if operator in (Operator.IN, Operator.NOT_IN) and not values:
        problems.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and values:
        text = msgspec.json.encode(values).decode()
        problems.append(f"values: Invalid value: {text}: values set must be empty for exists and does not exist")
    for index, value in enumerate(values):
        if operator in (Operator.GREATER_THAN, Operator.LESS_THAN) and _integer(value) is None:
            problem = "for 'Gt', 'Lt' operators, the value must be an integer"
            problems.append(f"values[{index}]: Invalid value: {go_quote(value)}: {problem}")
    for index, value in enumerate(values):
        if bad := label_value(value):
            problems.append(f"values[{index}][{key}]: Invalid value: {go_quote(value)}: {'; '.join(bad)}")
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, values)


_BINARY_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_EXPECTED_OPERATORS = ", ".join(operator.value for operator in _BINARY_OPERATORS.values())
#: A symbol or a word. As in Go's lexer, NUL ends a word, and at the start of a word it ends the text.
_tokens = re.compile(r"[ \t\r\n]*(==|!=|[=!(),><]|(?P<word>[^ \t\r\n=!(),><\0]+)\0?|\0)").match
_END = ""


class _SelectorParser:
    """Parses the tokens of a selector from left to right, with the messages of labels/selector.go."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool]] = []
        self._position = 0
        position = 0
        while (token := _tokens(text, position)) is not None and token[1] != "\0":
            self._tokens.append((token["word"], True) if token["word"] else (token[1], False))
            position = token.end()
        self._tokens.append((_END, False))

    def requirements(self) -> list[Requirement]:
        """Parse all requirements of the text."""
        result: list[Requirement] = []
        while True:
            token, is_word = self._peek()
            if token == _END:
                return result
            if not is_word and token != "!":
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                result.append(self._parse_requirement())
            except SelectorError as problem:
                raise SelectorError(f"unable to parse requirement: {problem}") from None
            token, _ = self._next()
            if token == _END:
                return result
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            token, is_word = self._peek()
            if not is_word and token != "!":
                raise SelectorError(f"found '{token}', expected: identifier after ','")

    def _peek(self) -> tuple[str, bool]:
        return self._tokens[self._position]

    def _next(self) -> tuple[str, bool]:
        self._position += 1
        return self._tokens[self._position - 1]

    def _parse_requirement(self) -> Requirement:
        token, is_word = self._next()
        negated = token == "!" and not is_word
        key, is_word = self._next() if negated else (token, is_word)
        if not is_word:
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := qualified_name(key):
            raise SelectorError(f"<nil>: Invalid value: {go_quote(key)}: {'; '.join(problems)}")
        if negated:
            return _requirement(key, Operator.DOES_NOT_EXIST, ())
        if self._peek()[0] in (_END, ","):
            return _requirement(key, Operator.EXISTS, ())
        token, _ = self._next()
        operator = _BINARY_OPERATORS.get(token)
        if operator is None:
            raise SelectorError(f"found '{token}', expected: {_EXPECTED_OPERATORS}")
        several = operator in (Operator.IN, Operator.NOT_IN)
        return _requirement(key, operator, self._parse_values() if several else (self._parse_value(),))

    def _parse_value(self) -> str:
        if self._peek()[0] in (_END, ","):
            return ""
        token, is_word = self._next()
        if not is_word:
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _parse_values(self) -> tuple[str, ...]:
        token, _ = self._next()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        token, is_word = self._peek()
        if token == ")":
            self._next()
            return ("",)
        if not is_word and token != ",":
            raise SelectorError(f"found '{token}', expected: ',', ')' or identifier")
        values = self._parse_value_list()
        self._next()
        return tuple(sorted(values))

    def _parse_value_list(self) -> dict[str, None]:
        """Parse values up to the closing parenthesis; two commas in a row enclose an empty value."""
        values: dict[str, None] = {}
        while True:
            token, is_word = self._next()
            following = self._peek()[0] if token != _END else _END
            if is_word:
                values[token] = None
                if following == ")":
                    return values
                if following != ",":
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
            elif token == ",":
                if not values:
                    values[""] = None
                if following == ")":
                    values[""] = None
                    return values
                if following == ",":
                    self._next()
                    values[""] = None
            else:
                raise SelectorError(f"found '{token}', expected: ',', or identifier")
