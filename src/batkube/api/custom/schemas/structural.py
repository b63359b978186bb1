"""The structural schema of a version: parsed once, with patterns compiled and formats resolved.

The raw schema is the one in the definition (apiextensions JSONSchemaProps). Pruning, defaulting, validation and the
schema for field ownership all walk this tree instead.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema, type Structural.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import msgspec

from batkube.api.cel.functions import regex
from batkube.api.cel.functions.string_formats import find_format_check
from batkube.api.cel.values import hash_key

Json = Any
"""Any JSON value."""

RawSchema = dict[str, Any]
"""An OpenAPI v3 schema as the definition's JSON."""

META_FIELDS = ("apiVersion", "kind", "metadata")
"""The fields of every object, whether or not its schema declares them."""


class Rule(msgspec.Struct, frozen=True):
    """One entry of x-kubernetes-validations, as written."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


class StructuralSchema(msgspec.Struct, eq=False):
    """The schema of one value. None and () stand for keywords that are not set."""

    #: The allowed JSON types: two for x-kubernetes-int-or-string, none if any type is allowed.
    types: tuple[str, ...] = ()
    #: The type as written, "" if it is not set.
    type: str = ""
    nullable: bool = False
    #: None means "no default": null is not a valid default.
    default: Any = None
    properties: dict[str, StructuralSchema] = {}
    #: The schema of a map's values.
    additional: StructuralSchema | None = None
    #: additionalProperties, if it is a boolean.
    additional_allowed: bool | None = None
    items: StructuralSchema | None = None

    preserves_unknown: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""

    #: Only formats that the server checks.
    format: str = ""
    format_check: Callable[[str], bool] | None = None
    maximum: int | float | None = None
    exclusive_maximum: bool = False
    minimum: int | float | None = None
    exclusive_minimum: bool = False
    multiple_of: int | float | None = None
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    pattern_check: regex.Pattern | None = None
    max_items: int | None = None
    min_items: int | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    #: The values of `enum`, in a form for lookups.
    enum_keys: frozenset[Hashable] = frozenset()
    all_of: tuple[StructuralSchema, ...] = ()
    any_of: tuple[StructuralSchema, ...] = ()
    one_of: tuple[StructuralSchema, ...] = ()
    negated: StructuralSchema | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def has_additional(self) -> bool:
        """Whether additionalProperties is set."""
        return self.additional is not None or self.additional_allowed is not None

    def child(self, key: str) -> StructuralSchema | None:
        """Return the schema of the value at `key` of an object."""
        part = self.properties.get(key)
        return part if part is not None else self.additional

    def nodes(self) -> Iterator[StructuralSchema]:
        """Yield this schema and all schemas below it, except value validations (`anyOf` and the like)."""
        yield self
        for node in (*self.properties.values(), self.additional, self.items):
            if node is not None:
                yield from node.nodes()


def subschema(raw: RawSchema, key: str) -> RawSchema | None:
    """Return the schema under a keyword that may also hold a boolean or a list (items, additionalProperties)."""
    part = raw.get(key)
    return part if isinstance(part, dict) else None


def parse_structural(raw: RawSchema) -> StructuralSchema:
    """Parse a schema, without validating it."""
    additional, items = subschema(raw, "additionalProperties"), subschema(raw, "items")
    allowed = raw.get("additionalProperties")
    node = StructuralSchema(
        types=_types(raw),
        type=raw.get("type") or "",
        nullable=raw.get("nullable") is True,
        default=copy.deepcopy(raw.get("default")),
        properties={name: parse_structural(value) for name, value in (raw.get("properties") or {}).items()},
        additional=parse_structural(additional) if additional is not None else None,
        additional_allowed=allowed if isinstance(allowed, bool) else None,
        items=parse_structural(items) if items is not None else None,
        preserves_unknown=raw.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=raw.get("x-kubernetes-embedded-resource") is True,
        int_or_string=raw.get("x-kubernetes-int-or-string") is True,
        list_type=raw.get("x-kubernetes-list-type") or "",
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        map_type=raw.get("x-kubernetes-map-type") or "",
        rules=_rules(raw),
    )
    _read_limits(node, raw)
    _read_string_limits(node, raw)
    node.all_of = tuple(parse_structural(part) for part in raw.get("allOf") or ())
    node.any_of = tuple(parse_structural(part) for part in raw.get("anyOf") or ())
    node.one_of = tuple(parse_structural(part) for part in raw.get("oneOf") or ())
    negated = raw.get("not")
    node.negated = parse_structural(negated) if negated is not None else None
    return node


def _types(raw: RawSchema) -> tuple[str, ...]:
    if raw.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (raw["type"],) if raw.get("type") else ()


def _read_limits(node: StructuralSchema, raw: RawSchema) -> None:
    node.maximum = raw.get("maximum")
    node.exclusive_maximum = raw.get("exclusiveMaximum") is True
    node.minimum = raw.get("minimum")
    node.exclusive_minimum = raw.get("exclusiveMinimum") is True
    node.multiple_of = raw.get("multipleOf")
    node.max_length = raw.get("maxLength")
    node.min_length = raw.get("minLength")
    node.max_items = raw.get("maxItems")
    node.min_items = raw.get("minItems")
    node.max_properties = raw.get("maxProperties")
    node.min_properties = raw.get("minProperties")
    node.required = tuple(raw.get("required") or ())
    node.enum = tuple(raw.get("enum") or ())
    node.enum_keys = frozenset(map(hash_key, node.enum))


def _read_string_limits(node: StructuralSchema, raw: RawSchema) -> None:
    check = find_format_check(raw.get("format") or "")
    if check is not None:
        node.format = raw["format"]
        node.format_check = check
    node.pattern = raw.get("pattern") or ""
    if node.pattern:
        try:
            node.pattern_check = regex.compile_pattern(node.pattern)
        except regex.BadPattern:
            node.pattern_check = None


def _rules(raw: RawSchema) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            rule=rule.get("rule") or "",
            message=rule.get("message") or "",
            message_expression=rule.get("messageExpression") or "",
            reason=rule.get("reason") or "",
            field_path=rule.get("fieldPath") or "",
            optional_old_self=rule.get("optionalOldSelf"),
        )
        for rule in raw.get("x-kubernetes-validations") or ()
    )


def raw_subschemas(raw: RawSchema) -> Iterator[RawSchema]:
    """Yield a raw schema and every schema inside it, under any keyword."""
    yield raw
    for key in ("not", "items", "additionalProperties", "additionalItems"):
        part = raw.get(key)
        if isinstance(part, dict):
            yield from raw_subschemas(part)
    for key in ("allOf", "anyOf", "oneOf", "items"):
        for part in raw.get(key) or () if isinstance(raw.get(key), list) else ():
            yield from raw_subschemas(part)
    for key in ("properties", "patternProperties", "definitions", "dependencies"):
        for part in (raw.get(key) or {}).values():
            if isinstance(part, dict):
                yield from raw_subschemas(part)
