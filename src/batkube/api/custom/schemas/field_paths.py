"""Paths into a schema, as definitions write them: `.spec.size`, `.spec['a.b']`.

Selectable fields and the fieldPath of a rule must refer to fields that the schema declares.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, ValidFieldPath.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from batkube.api.custom.schemas.structural import StructuralSchema

_tokens = re.compile(r"'(?:[^'\\]|\\.)*'|'.*|[.\[\]]|[^.\[\]']+[^.\[\]]*").findall
_escapes = re.compile(r"\\(.)")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class BadFieldPath(ValueError):
    """The path does not exist in the schema; the text is kube-apiserver's error message."""


class ResolvedPath(NamedTuple):
    """The schema that a JSON path refers to, and the path's steps."""

    #: The steps, outermost first.
    steps: tuple[str, ...]
    #: The path as field errors write it: `spec.labels[app]`.
    text: str
    schema: StructuralSchema


def resolve_field_path(path: str, schema: StructuralSchema, *, brackets: bool = True) -> ResolvedPath:
    """Resolve `path` in `schema`; raises BadFieldPath."""
    resolved = ResolvedPath((), "", schema)
    tokens = iter(_tokens(path))
    for token in tokens:
        if token == ".":
            resolved = _step_into(resolved, _next_token(tokens))
        elif token == "[":
            if not brackets:
                raise BadFieldPath("array notation is not allowed")
            quoted = _next_token(tokens)
            if len(quoted) < 2 or not (quoted[0] == quoted[-1] == "'"):
                raise BadFieldPath(f"expected single quoted string but got {quoted}")
            resolved = _step_into(resolved, _unescape(quoted[1:-1]))
            closing = _next_token(tokens)
            if closing != "]":
                raise BadFieldPath(f"expected ] but got {closing}")
        else:
            raise BadFieldPath(f"expected [ or . but got: {token}")
    return resolved


def _next_token(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise BadFieldPath("unexpected end of JSON path")
    return token


def _unescape(text: str) -> str:
    for letter in _escapes.findall(text):
        if letter not in _ESCAPED:
            raise BadFieldPath(f"invalid string literal: invalid escape char \\{letter}")
    return _escapes.sub(lambda match: _ESCAPED[match[1]], text)


def _step_into(resolved: ResolvedPath, name: str) -> ResolvedPath:
    schema = resolved.schema
    if schema.properties:
        below, text = schema.properties.get(name), f"{resolved.text}.{name}" if resolved.text else name
    else:
        below, text = schema.additional, f"{resolved.text}[{name}]"
        if below is None and schema.additional_allowed is not None:
            below = StructuralSchema()
    if below is None:
        raise BadFieldPath("does not refer to a valid field")
    return ResolvedPath((*resolved.steps, name), text, below)
