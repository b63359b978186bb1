"""Kubernetes' dialect of JSONPath, for the printer columns of custom resources.

It has `.a.b`, `['a']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `[0,2]`, `..a`, filters such as `[?(@.type=="Ready")]`, and a
backslash before a dot within a name. A path that does not parse raises `BadJsonPath`; one that does not fit the object
(an index beyond a list's end) raises `PathNotApplicable`; missing fields yield no values.

A path is parsed to a list of steps, each of which maps a list of values to another one.

Kubernetes: client-go/util/jsonpath.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

from batkube.kernel.numbers import parse_float

Json = Any
"""Any JSON value."""

Values = list[Json]
"""The values that a path has reached so far."""

Step = Callable[[Values], Values]

_NAME = re.compile(r"(?:\\.|[^\\ \t\r\n.,\[\]$@{}])*")
_NUMBER = re.compile(r"[+-]?[0-9.]*")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_FILTER = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.S)
_QUOTED = {quote: re.compile(rf"{quote}((?:\\.|[^{quote}\\])*){quote}", re.S) for quote in "\"'"}
_FILTER_BRACKETS = re.compile(r"""\[\?\(((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^"')])*)\)\]""")
_ESCAPE = re.compile(r"\\(.)")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class BadJsonPath(ValueError):
    """The text is not a JSONPath."""


#: The maximum number of values at each step; a column prints a few of them.
_RESULTS_MAX = 10_000


class PathNotApplicable(Exception):
    """The path cannot be followed in this object."""


class JsonPath:
    """A parsed path."""

    def __init__(self, text: str) -> None:
        self._steps = list(_PathParser(text).steps())

    def evaluate(self, value: Json) -> Values:
        """Return the values at the path; raises PathNotApplicable if it does not fit the object."""
        return _run_steps(self._steps, [value])


def _run_steps(steps: list[Step], values: Values) -> Values:
    for step in steps:
        values = step(values)
        _check_count(values)
    return values


def _check_count(values: Values) -> None:
    """Stop a path whose values multiply, as `..a..a..a` does in a deep object."""
    if len(values) > _RESULTS_MAX:
        raise PathNotApplicable(f"the path finds more than {_RESULTS_MAX} values")


class _PathParser:
    """Parses a path from left to right, one step at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the whole path."""
        has_descended = False
        while self.position < len(self.text):
            rest = self.text[self.position :]
            if rest[0] == "}":
                # Kubernetes writes the path in braces; text after the closing brace is not part of it.
                return
            if rest[0] in " @$":
                self.position += 1
            elif not rest.startswith(".."):
                yield from self._plain_step(rest)
                has_descended = False
            elif has_descended:
                raise BadJsonPath("invalid multiple recursive descent")
            else:
                self.position += 2
                yield _descend
                has_descended = not _is_letter(rest[2:3])
                if not has_descended:
                    yield self._field()

    def _plain_step(self, rest: str) -> Iterator[Step]:
        first = rest[0]
        if rest.startswith("[?("):
            yield self._filter()
        elif first == "[":
            yield from self._brackets()
        elif first == ".":
            self.position += 1
            yield self._field()
        elif first in "\"'":
            text = self._quoted(first)
            yield lambda values: [text]
        elif first in "+-" or first.isdigit():
            yield _constant_step(self._number())
        elif _is_letter(first):
            word = self._name()
            yield (
                _constant_step(word == "true")
                if word in ("true", "false")
                else _failing_step(f"unrecognized identifier {word}")
            )
        else:
            raise BadJsonPath(f"unrecognized character in action: {first}")

    def _field(self) -> Step:
        name = self._name()
        return _all_children if name == "*" else _field_step(_ESCAPE.sub(r"\1", name))

    def _name(self) -> str:
        match = _NAME.match(self.text, self.position)
        name = match.group() if match else ""
        self.position += len(name)
        return name

    def _number(self) -> int | float:
        match = _NUMBER.match(self.text, self.position)
        digits = match.group() if match else ""
        self.position += len(digits)
        try:
            return parse_float(digits) if "." in digits else int(digits)
        except ValueError:
            raise BadJsonPath(f"cannot parse number {digits}") from None

    def _quoted(self, quote: str) -> str:
        match = _QUOTED[quote].match(self.text, self.position)
        if match is None:
            raise BadJsonPath("unterminated quoted string")
        self.position = match.end()
        return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), match[1])

    def _brackets(self) -> Iterator[Step]:
        end = self.text.find("]", self.position)
        if end < 0:
            raise BadJsonPath("unterminated array")
        inside = self.text[self.position + 1 : end]
        self.position = end + 1
        parts = inside.split(",")
        if len(parts) > 1:
            yield _union_step([list(_PathParser(f"[{part.strip(' ')}]").steps()) for part in parts])
        elif len(inside) > 1 and inside[0] == inside[-1] == "'" and "'" not in inside[1:-1]:
            yield from _PathParser(f".{inside[1:-1]}").steps()
        else:
            yield _slice_step(":" if inside == "*" else inside)

    def _filter(self) -> Step:
        match = _FILTER_BRACKETS.match(self.text, self.position)
        if match is None:
            raise BadJsonPath("unterminated filter")
        self.position = match.end()
        compared = _FILTER.fullmatch(match[1])
        if compared is None:
            return _exists_filter(list(_PathParser(match[1]).steps()))
        left, comparison, right = compared.groups()
        sides = [list(_PathParser(side).steps()) for side in (left, right)]
        if comparison not in _COMPARISONS:
            return _failing_step(f"unrecognized filter operator {comparison}")
        return _comparison_filter(sides[0], _COMPARISONS[comparison], sides[1])


def _is_letter(char: str) -> bool:
    return char == "_" or char.isalnum()


def _constant_step(value: Json) -> Step:
    return lambda values: [value] * len(values)


def _failing_step(problem: str) -> Step:
    def fail(values: Values) -> Values:
        raise PathNotApplicable(problem)

    return fail


def _field_step(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _children(value: Json) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _all_children(values: Values) -> Values:
    return [part for value in values for part in _children(value)]


def _descend(values: Values) -> Values:
    below: Values = []
    pending = values[::-1]
    while pending:
        value = pending.pop()
        parts = _children(value)
        # Strings count as containers, of characters, which have no fields.
        if parts or (isinstance(value, str) and value):
            below.append(value)
            pending += reversed(parts)
            _check_count(below)
    return below


def _union_step(branches: list[list[Step]]) -> Step:
    return lambda values: [value for steps in branches for value in _run_steps(steps, values)]


def _slice_step(text: str) -> Step:
    match = _SLICE.fullmatch(text)
    if match is None:
        raise BadJsonPath(f"invalid array index {text}")
    try:
        start = int(match[1]) if match[1] else None
        is_single_index = match[2] is None
        end = None if is_single_index or match[2] == ":" else int(match[2][1:])
        step = int(match[3][1:]) if match[3] not in (None, ":") else 1
    except ValueError:
        raise BadJsonPath(f"array index {text} is not a number") from None

    def take(values: Values) -> Values:
        parts: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise PathNotApplicable(f"{type(value).__name__} is not array or slice")
            parts += _slice_list(value, start, (start or 0) + 1 if is_single_index else end, is_single_index, step)
        return parts

    return take


def _slice_list(value: Values, start: int | None, end: int | None, is_single_index: bool, step: int) -> Values:
    length = len(value)
    low = start or 0
    low += length if low < 0 else 0
    high = length if end is None else end
    # `[-1]` ends at its start plus one, which is 0 and stands for the list's end (Kubernetes: ParamsEntry.Derived).
    high += length if high < 0 or (high == 0 and is_single_index) else 0
    if low == high:
        return []
    if not 0 <= low < length or not 0 <= high <= length or low > high or step <= 0:
        raise PathNotApplicable(f"array index out of bounds: index {low}, length {length}")
    return value[low:high:step]


def _elements(values: Values) -> Iterator[Json]:
    for value in values:
        if not isinstance(value, list):
            raise PathNotApplicable(f"{value} is not array or slice and cannot be filtered")
        yield from value


def _exists_filter(steps: list[Step]) -> Step:
    return lambda values: [part for part in _elements(values) if _run_steps(steps, [part])]


def _comparison_filter(left: list[Step], compare: Callable[[Any, Any], bool], right: list[Step]) -> Step:
    def keep(part: Json) -> bool:
        sides = [_run_steps(left, [part]), _run_steps(right, [part])]
        if not sides[0] or not sides[1]:
            return False
        if max(map(len, sides)) > 1:
            raise PathNotApplicable("can only compare one element at a time")
        first, second = sides[0][0], sides[1][0]
        if type(first) is not type(second) or not isinstance(first, str | int | float | bool):
            raise PathNotApplicable("incompatible types for comparison")
        return compare(first, second)

    return lambda values: [part for part in _elements(values) if keep(part)]
