"""Paths into a schema, as definitions write them: `.spec.size`, `.spec['a.b']`.

Selectable fields and the fieldPath of a rule must lead to something the schema describes (Kubernetes:
apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from batkube.api.custom.structural import Structural

_tokens = re.compile(r"'(?:[^'\\]|\\.)*'|'.*|[.\[\]]|[^.\[\]']+[^.\[\]]*").findall
_escapes = re.compile(r"\\(.)")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class BadPath(ValueError):
    """The path leads nowhere; the text says why in the words of the real server."""


class FoundPath(NamedTuple):
    """Where a JSON path leads in a schema, and the steps to it."""

    #: The steps, the outermost first.
    steps: tuple[str, ...]
    #: The path as field errors write it: `spec.labels[app]`.
    text: str
    schema: Structural


def resolve(path: str, schema: Structural, *, brackets: bool = True) -> FoundPath:
    """Follow `path` through `schema`; raises BadPath."""
    place = FoundPath((), "", schema)
    tokens = iter(_tokens(path))
    for token in tokens:
        if token == ".":
            place = _step(place, _next(tokens))
        elif token == "[":
            if not brackets:
                raise BadPath("array notation is not allowed")
            quoted = _next(tokens)
            if len(quoted) < 2 or not (quoted[0] == quoted[-1] == "'"):
                raise BadPath(f"expected single quoted string but got {quoted}")
            place = _step(place, _unescaped(quoted[1:-1]))
            closing = _next(tokens)
            if closing != "]":
                raise BadPath(f"expected ] but got {closing}")
        else:
            raise BadPath(f"expected [ or . but got: {token}")
    return place


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise BadPath("unexpected end of JSON path")
    return token


def _unescaped(text: str) -> str:
    for letter in _escapes.findall(text):
        if letter not in _ESCAPED:
            raise BadPath(f"invalid string literal: invalid escape char \\{letter}")
    return _escapes.sub(lambda match: _ESCAPED[match[1]], text)


def _step(place: FoundPath, name: str) -> FoundPath:
    schema = place.schema
    if schema.properties:
        below, text = schema.properties.get(name), f"{place.text}.{name}" if place.text else name
    else:
        below, text = schema.additional, f"{place.text}[{name}]"
        if below is None and schema.additional_allowed is not None:
            below = Structural()
    if below is None:
        raise BadPath("does not refer to a valid field")
    return FoundPath((*place.steps, name), text, below)
