"""Validation of an applied configuration against the schema of its kind.

Server-side apply checks the schema first, with error messages of its own, those of Go's typed values.

Kubernetes: structured-merge-diff, typed/validate.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from batkube.api.managed_fields.field_sets import element_text
from batkube.api.managed_fields.typed_values import (
    DEDUCED_SCHEMA,
    SchemaMismatch,
    children,
    is_associative,
    item_element,
)
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.text.go_format import go_quote, go_value

_STRING_SHAPES = (Shape.STRING, Shape.BYTES, Shape.DURATION)
_NUMBER_SHAPES = (Shape.INTEGER, Shape.NUMBER)
#: Special formats, which are checked when the object is decoded.
_UNVALIDATED_SHAPES = (Shape.QUANTITY, Shape.TIME, Shape.MICRO_TIME)


def validate(value: object, schema: Schema) -> None:
    """Raise SchemaMismatch with all errors in `value`."""
    problems = [f"{path}: {problem}" if path else problem for path, problem in _problems(value, schema)]
    if len(problems) == 1:
        raise SchemaMismatch(problems[0])
    if problems:
        raise SchemaMismatch("\n  ".join(["errors:", *problems]))


def _problems(value: object, schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield path and message of every error."""
    if value is None:
        return
    if schema.shape is Shape.STRUCT or schema.shape is Shape.MAP:
        if isinstance(value, dict):
            yield from _map_problems(value, schema)
        else:
            yield "", f"expected map, got &{{{go_value(value)}}}"
    elif schema.shape is Shape.LIST:
        if isinstance(value, list):
            yield from _list_problems(value, schema)
        else:
            yield "", f"expected list, got &{{{go_value(value)}}}"
    elif problem := _scalar_problem(value, schema):
        yield "", problem


def _map_problems(value: dict[str, object], schema: Schema) -> Iterator[tuple[str, str]]:
    fields, other_schema = _map_fields(schema)
    for name, item in value.items():
        field = fields.get(name)
        below = field.schema if field is not None else other_schema
        if below is None:
            yield f".{name}", "field not declared in schema"
            return
        for path, problem in _problems(item, below):
            yield f".{name}{path}", problem


def _map_fields(schema: Schema) -> tuple[dict[str, Field], Schema | None]:
    """Return the fields of a map, atomic maps included: they have one owner, but must match the schema."""
    fields = children(schema, None)
    if fields is not None:
        return fields
    return schema.fields, schema.items or (DEDUCED_SCHEMA if schema.keeps_unknown else None)


def _list_problems(items: list[object], schema: Schema) -> Iterator[tuple[str, str]]:
    seen: dict[str, int] = {}
    for number, item in enumerate(items):
        place = f"[{number}]"
        if is_associative(schema):
            try:
                element = item_element(item, schema)
            except SchemaMismatch as missing:
                yield "", f"element {number}: {missing}"
                return
            place = element_text(element)
            if seen.setdefault(element, number) != number:
                yield "", f"duplicate entries for key {place}"
        for path, problem in _problems(item, schema.items or DEDUCED_SCHEMA):
            yield f"{place}{path}", problem


def _scalar_problem(value: object, schema: Schema) -> str:
    """Return the error of a value where the schema has a scalar, or ""."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if schema.shape in _NUMBER_SHAPES and not is_number:
        return f"expected numeric (int or float), got {_go_type(value)}"
    if schema.shape in _STRING_SHAPES and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_go_literal(value)}}}"
    if schema.shape is Shape.BOOLEAN and not isinstance(value, bool):
        return f"expected boolean, got &{{{go_value(value)}}}"
    if schema.shape in _UNVALIDATED_SHAPES and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{go_value(value)}}}"
    return ""


def _go_type(value: object) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "bool" if isinstance(value, bool) else "string"


def _go_literal(value: object) -> str:
    """Format a value as Go source, like %#v."""
    if isinstance(value, dict):
        return _go_type(value) + "{" + ", ".join(f"{go_quote(k)}:{_go_literal(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return _go_type(value) + "{" + ", ".join(map(_go_literal, value)) + "}"
    if value is None:
        return "interface {}(nil)"
    return go_quote(value) if isinstance(value, str) else go_value(value)
