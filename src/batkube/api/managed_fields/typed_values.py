"""Values with their schema: the fields that they have, and the differences between two of them.

The schema decides where ownership stops. A scalar, an atomic list or an atomic map has one owner as a whole; structs,
other maps and lists of type `set` or `map` are owned field by field and item by item. Where there is no schema
(free-form JSON, preserved unknown fields of custom resources) the type is deduced: maps are granular, lists are atomic.

Kubernetes: structured-merge-diff, typed/compare.go and tofieldset.go; kube-openapi, schemaconv.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from batkube.api.managed_fields.field_sets import EMPTY_SET, LEAF, FieldSet, key_element, keys_element, value_element
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.text.go_format import go_quote

DEDUCED_SCHEMA = Schema(Shape.ANY, go="interface {}")
"""The schema of values without one: their type is deduced."""

#: Free-form JSON that is atomic in kube-apiserver; the type of all other free-form JSON is deduced.
_ATOMIC_ANY = "runtime.RawExtension"
_ABSENT: Final = object()
#: A tuple, because a union type would be created again for every field.
_NESTED = (dict, list)
_NO_FIELDS: dict[str, Field] = {}


class SchemaMismatch(Exception):
    """A value does not match its schema."""


class FieldComparison(NamedTuple):
    """The differences between two objects as sets of fields; no path is in two of them."""

    removed: FieldSet
    #: In both objects, with different values.
    modified: FieldSet
    added: FieldSet


def children(schema: Schema, value: object) -> tuple[dict[str, Field], Schema | None] | None:
    """Return the named fields of a map or struct and the schema of its other keys; None if `value` is a leaf.

    The schema of other keys is None if they are not allowed. `value` matters only where types are deduced; None stands
    for an absent value.
    """
    shape = schema.shape
    if shape is Shape.STRUCT:
        if schema.atomic:
            return None
        return schema.fields, DEDUCED_SCHEMA if schema.keeps_unknown or not schema.fields else None
    if shape is Shape.MAP:
        return None if schema.atomic else (_NO_FIELDS, schema.items or DEDUCED_SCHEMA)
    if shape is Shape.ANY and schema.go != _ATOMIC_ANY and isinstance(value, dict):
        return _NO_FIELDS, DEDUCED_SCHEMA
    return None


def is_associative(schema: Schema) -> bool:
    """Return whether the items of a list have owners of their own."""
    return schema.shape is Shape.LIST and schema.list_type != "atomic"


# The elements of lists


def item_element(item: object, schema: Schema) -> str:
    """Return the path element of an item of a `set` or `map` list; raises SchemaMismatch if it has none."""
    if schema.list_type == "set":
        return _set_element(item)
    if not isinstance(item, dict):
        noun = "a null element" if item is None else "non-map elements"
        raise SchemaMismatch(f"associative list with keys may not have {noun}")
    keys = schema.list_keys
    if len(keys) == 1 and isinstance(value := item.get(keys[0]), str):
        return key_element(keys[0], value)
    return _keys_element(item, schema)


def _keys_element(item: dict[str, Any], schema: Schema) -> str:
    """Return the path element by the item's keys, including the defaults of missing ones."""
    fields = schema.items.fields if schema.items is not None else _NO_FIELDS
    named: dict[str, object] = {}
    for key in schema.list_keys:
        if key in item:
            named[key] = item[key]
        elif key in fields and fields[key].default is not None:
            named[key] = fields[key].default
    if not named:
        keys = " ".join(go_quote(key) for key in schema.list_keys)
        problem = f"associative list with keys has an element that omits all key fields [{keys}]"
        raise SchemaMismatch(f"{problem} (and doesn't have default values for any key fields)")
    return keys_element(named)


def _set_element(item: object) -> str:
    if isinstance(item, dict):
        raise SchemaMismatch("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise SchemaMismatch("not supported: associative list with lists as elements")
    if item is None:
        raise SchemaMismatch("associative list without keys has an element that's an explicit null")
    return value_element(item)


def items_by_element(items: list[Any] | None, schema: Schema) -> dict[str, list[Any]]:
    """Return the items of a list by their path element; duplicates share an element."""
    groups: dict[str, list[Any]] = {}
    for item in items or ():
        groups.setdefault(item_element(item, schema), []).append(item)
    return groups


# Which fields a value has


def all_fields(value: object, schema: Schema) -> FieldSet:
    """Return the node of a new value: the value itself and everything below it."""
    if not value:
        return LEAF
    if isinstance(value, dict):
        below = children(schema, value)
        if below is None:
            return LEAF
        fields, other_schema = below
        node: FieldSet = {".": LEAF}
        for name, item in value.items():
            if isinstance(item, _NESTED):
                field = fields.get(name)
                node["f:" + name] = all_fields(
                    item, field.schema if field is not None else other_schema or DEDUCED_SCHEMA
                )
            else:
                node["f:" + name] = LEAF
        return node
    if isinstance(value, list) and is_associative(schema):
        return {".": LEAF, **_all_item_fields(value, schema)}
    return LEAF


def _all_item_fields(items: list[Any], schema: Schema) -> FieldSet:
    below = schema.items or DEDUCED_SCHEMA
    groups = items_by_element(items, schema)
    return {element: all_fields(same[0], below) if len(same) == 1 else LEAF for element, same in groups.items()}


def to_field_set(value: object, schema: Schema) -> FieldSet:
    """Return the set of fields that a configuration sets: its leaves, and the items of its lists.

    Unlike `all_fields`, it omits the structs and lists on the path, because setting a field in them does not make its
    manager their owner.
    """
    return _to_field_set(value, schema)[1]


def _to_field_set(value: object, schema: Schema) -> tuple[bool, FieldSet]:
    """Return whether the value's own path is in the set, and the set of fields below it."""
    below = children(schema, value)
    if below is not None:
        return False, _map_to_field_set(value, *below) if isinstance(value, dict) else EMPTY_SET
    if not is_associative(schema):
        return True, EMPTY_SET
    node: FieldSet = {}
    if isinstance(value, list):
        for element, same in items_by_element(value, schema).items():
            deeper = _to_field_set(same[0], schema.items or DEDUCED_SCHEMA)[1] if len(same) == 1 else None
            node[element] = {".": LEAF, **deeper} if deeper else LEAF
    return False, node


def _map_to_field_set(value: dict[str, Any], fields: dict[str, Field], others: Schema | None) -> FieldSet:
    node: FieldSet = {}
    for name, item in value.items():
        field = fields.get(name)
        itself, below = _to_field_set(item, field.schema if field is not None else others or DEDUCED_SCHEMA)
        itself = itself or field is None or item is None or item == {}
        if itself:
            node["f:" + name] = {".": LEAF, **below} if below else LEAF
        elif below:
            node["f:" + name] = below
    return node


# How two values differ


def compare(old: dict[str, Any], new: dict[str, Any], schema: Schema) -> FieldComparison:
    """Return the differences between the objects `old` and `new`."""
    outcome = FieldComparison({}, {}, {})
    fields, other_schema = children(schema, new) or (_NO_FIELDS, DEDUCED_SCHEMA)
    _compare_maps(old, new, fields, other_schema, outcome)
    return outcome


def _compare_maps(
    old: dict[str, Any], new: dict[str, Any], fields: dict[str, Field], others: Schema | None, outcome: FieldComparison
) -> None:
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        if before is after:
            continue
        field = fields.get(name)
        schema = field.schema if field is not None else others or DEDUCED_SCHEMA
        if before is _ABSENT:
            outcome.added["f:" + name] = all_fields(after, schema)
        elif before != after:
            _compare_values(before, after, schema, "f:" + name, outcome)
    for name, before in old.items():
        if name not in new:
            field = fields.get(name)
            schema = field.schema if field is not None else others or DEDUCED_SCHEMA
            outcome.removed["f:" + name] = all_fields(before, schema)


def _compare_values(before: object, after: object, schema: Schema, element: str, outcome: FieldComparison) -> None:
    """Record the differences between two different values at `element`.

    null is treated as an empty map or list, except that two empty values are compared as leaves, which distinguishes
    null from empty. If the deduced types differ, all old fields are removed and all new ones added, below a modified
    path.
    """
    inner = FieldComparison({}, {}, {})
    maps = children(schema, before) or children(schema, after)
    if maps is not None and (before or after) and (schema.shape is not Shape.ANY or _both_maps(before, after)):
        _compare_maps(_as_map(before), _as_map(after), *maps, inner)
    elif maps is None and is_associative(schema) and (before or after):
        _compare_lists(_as_list(before), _as_list(after), schema, inner)
    else:
        outcome.modified[element] = LEAF
        if schema.shape is Shape.ANY and maps is not None:
            _compare_maps(_as_map(before), _as_map(after), *maps, inner)
    for into, fields in zip(outcome, inner, strict=True):
        if fields:
            into[element] = fields


def _both_maps(before: object, after: object) -> bool:
    return all(value is None or isinstance(value, dict) for value in (before, after))


def _as_map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _compare_lists(before: list[Any], after: list[Any], schema: Schema, outcome: FieldComparison) -> None:
    """Compare item by item; duplicated items are compared as one atomic item."""
    below = schema.items or DEDUCED_SCHEMA
    old, new = items_by_element(before, schema), items_by_element(after, schema)
    for element, olds in old.items():
        news = new.get(element, ())
        if len(olds) == 1 and len(news) == 1:
            if olds[0] != news[0]:
                _compare_values(olds[0], news[0], below, element, outcome)
        elif len(olds) > 1 and len(news) > 1:
            if olds != news:
                outcome.modified[element] = LEAF
        else:
            outcome.removed[element] = all_fields(olds[0], below) if len(olds) == 1 else LEAF
            if news:
                outcome.added[element] = all_fields(news[0], below) if len(news) == 1 else LEAF
    for element, news in new.items():
        if element not in old:
            outcome.added[element] = all_fields(news[0], below) if len(news) == 1 else LEAF


# Field sets and schema changes


def reconcile_field_set(fields: FieldSet, schema: Schema) -> FieldSet:
    """Adapt a field set to the current schema: owners of parts of a value own it as a whole once it is atomic.

    The schema of a custom resource may have changed since the set was created (Kubernetes: typed/reconcile_schema.go).
    If nothing changes, the same set is returned.
    """
    named, other_schema = children(schema, {}) or (_NO_FIELDS, None)
    items = schema.items if is_associative(schema) else None
    changed: FieldSet = {}
    for element, node in fields.items():
        if not node:
            continue
        field = named.get(element[2:]) if element[0] == "f" else None
        below = field.schema if field is not None else other_schema if element[0] == "f" else items
        if below is not None and below.shape is not Shape.ANY:
            now = LEAF if _is_atomic(below) else reconcile_field_set(node, below)
            if now is not node:
                changed[element] = now
    return {**fields, **changed} if changed else fields


def _is_atomic(schema: Schema) -> bool:
    if schema.shape is Shape.LIST:
        return schema.list_type == "atomic"
    return schema.atomic and schema.shape in (Shape.STRUCT, Shape.MAP)
