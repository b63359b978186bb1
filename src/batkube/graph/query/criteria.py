"""Criteria for `find`: `status=down and (sched-now=allocated or names=node[0-3])`.

A criterion is `key=value`. Criteria are joined by `and`, `or` or nothing, which means `and`. There
is no precedence: they apply from left to right, and parentheses group them.

Imitates flux-sched resource/evaluators/expr_eval_api.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from batkube.graph.idsets import decode_hostlist

_CHOICES = {
    "status": ("up", "down"),
    "sched-now": ("allocated", "free"),
    "sched-future": ("reserved", "free"),
    "agfilter": ("true", "t", "false", "f"),
}
_JOB_KEYS = ("jobid-alloc", "jobid-span", "jobid-tag", "jobid-reserved")


class Criterion(NamedTuple):
    """A key and the value that it must have."""

    key: str
    value: str


class JoinedCriteria(NamedTuple):
    """Criteria or groups of them, each with the operator that joins it to those before it."""

    parts: tuple[tuple[str, Criterion | JoinedCriteria], ...]

    def evaluate(self, test: Callable[[Criterion], bool]) -> bool:
        """Return whether the criteria hold, given a test for single ones."""
        result = True
        for operator, part in self.parts:
            holds = test(part) if isinstance(part, Criterion) else part.evaluate(test)
            result = (result or holds) if operator == "or" else (result and holds)
        return result

    def criteria(self) -> Iterator[Criterion]:
        """Yield the single criteria in order."""
        for _, part in self.parts:
            if isinstance(part, Criterion):
                yield part
            else:
                yield from part.criteria()


def parse_criteria(text: str) -> JoinedCriteria:
    """Parse criteria. Raises ValueError for an invalid criterion or unbalanced parentheses."""
    tokens = re.findall(r"\(|\)|[^\s()]+(?:\([^\s()]*\))*", text)
    criteria, rest = _parse_tokens(tokens)
    if rest:
        raise ValueError(f"unbalanced ) in {text!r}")
    return criteria


def _parse_tokens(tokens: list[str]) -> tuple[JoinedCriteria, list[str]]:
    parts: list[tuple[str, Criterion | JoinedCriteria]] = []
    while tokens and tokens[0] != ")":
        operator = "and"
        if parts and tokens[0] in ("and", "or"):
            operator, *tokens = tokens
        if not tokens or tokens[0] == ")":
            raise ValueError(f"no criterion after {operator!r}")
        token, *tokens = tokens
        if token == "(":
            inner, tokens = _parse_tokens(tokens)
            if not tokens:
                raise ValueError("unbalanced (")
            parts.append((operator, inner))
            tokens = tokens[1:]
        else:
            parts.append((operator, _parse_criterion(token)))
    if not parts:
        raise ValueError("no criterion")
    return JoinedCriteria(tuple(parts)), tokens


def _parse_criterion(token: str) -> Criterion:
    key, equals, value = token.partition("=")
    if not equals:
        raise ValueError(f"{token!r} is not of the form key=value")
    if key in _CHOICES and value.lower() in _CHOICES[key]:
        return Criterion(key, value.lower())
    if key in _JOB_KEYS and value.isdecimal():
        return Criterion(key, value)
    if key == "property" and value:
        return Criterion(key, value.lower())
    if key == "names":
        decode_hostlist(value.lower())
        return Criterion(key, value.lower())
    raise ValueError(f"{token!r} is not a known criterion")
