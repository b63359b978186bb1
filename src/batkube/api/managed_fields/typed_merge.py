"""Merging a configuration into an object, and removing fields from an object.

Inputs are never modified; results share unchanged parts with them.

Kubernetes: structured-merge-diff, typed/merge.go and typed/remove.go.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from batkube.api.managed_fields.field_sets import LEAF, FieldSet, is_member
from batkube.api.managed_fields.typed_values import DEDUCED_SCHEMA, children, is_associative, item_element
from batkube.cluster.schemas import Field, Schema, Shape


def merge(live: object, config: object, schema: Schema) -> Any:  # noqa: ANN401 - any JSON
    """Merge `config` into `live`; fields that `config` omits are kept."""
    maps = children(schema, live if config is None else config)
    if maps is not None:
        if isinstance(live, dict) and (live or config):
            return _merge_maps(live, config if isinstance(config, dict) else {}, *maps)
    elif is_associative(schema) and isinstance(live, list) and (live or config):
        return _merge_lists(live, config if isinstance(config, list) else [], schema)
    return config


def _merge_maps(
    live: dict[str, Any], config: dict[str, Any], fields: dict[str, Field], others: Schema | None
) -> dict[str, Any]:
    out = dict(live)
    for name, value in config.items():
        field = fields.get(name)
        below = field.schema if field is not None else others or DEDUCED_SCHEMA
        out[name] = merge(live[name], value, below) if name in live else value
    return out


def _merge_lists(live: list[Any], config: list[Any], schema: Schema) -> list[Any]:
    """Merge items with the same path element, in the order of the configuration.

    Live items that are not in the configuration stay before the next item that both lists contain.
    """
    below = schema.items or DEDUCED_SCHEMA
    config_items = {item_element(item, schema): item for item in config}
    here = [item_element(item, schema) for item in live]
    times = Counter(here)
    live_items = {element: item if times[element] == 1 else None for element, item in zip(here, live, strict=True)}
    common = iter([element for element in config_items if element in live_items])
    upcoming = next(common, None)
    order = list(config_items)
    out: list[Any] = []
    left = right = 0
    while left < len(here) or right < len(order):
        if left < len(here):
            element = here[left]
            if element not in config_items:
                out.append(live[left])
                left += 1
                continue
            if right < len(order) and element != order[right] and upcoming not in (None, element):
                left += 1
                continue
            if right == len(order) or element == order[right] or element in order[:right]:
                left += 1
        if right < len(order):
            element = order[right]
            out.append(
                merge(live_items[element], config_items[element], below)
                if element in live_items
                else config_items[element]
            )
            right += 1
            if element == upcoming:
                upcoming = next(common, None)
    return out


def remove_fields(value: object, fields: FieldSet, schema: Schema) -> Any:  # noqa: ANN401 - any JSON
    """Return `value` without the fields and items of a set; null if nothing remains."""
    maps = children(schema, value)
    if maps is not None:
        return _remove_from_map(value, fields, *maps) if isinstance(value, dict) else None
    if is_associative(schema):
        return _remove_from_list(value, fields, schema) if isinstance(value, list) else None
    return None if isinstance(value, dict | list) else value


def _remove_from_map(
    value: dict[str, Any], fields: FieldSet, named: dict[str, Field], others: Schema | None
) -> dict[str, Any] | None:
    out = {}
    for name, item in value.items():
        node = fields.get("f:" + name)
        if node is None:
            out[name] = item
        elif not is_member(node):
            field = named.get(name)
            out[name] = remove_fields(item, node, field.schema if field is not None else others or DEDUCED_SCHEMA)
    return out or None


def _remove_from_list(items: list[Any], fields: FieldSet, schema: Schema) -> list[Any] | None:
    out = []
    for item in items:
        node = fields.get(item_element(item, schema))
        if node is None:
            out.append(item)
        elif not is_member(node):
            out.append(remove_fields(item, node, schema.items or DEDUCED_SCHEMA))
    return out or None


def ensure_named_fields(fields: FieldSet, schema: Schema) -> FieldSet:
    """Add the structs and lists on the path of each field if they are fields of a struct.

    Setting `spec.replicas` does not make a manager the owner of `spec`. But when the last field below `spec` is
    removed, `spec` is removed too.
    """
    named, other_schema = children(schema, {}) or ({}, None)
    out: FieldSet = {}
    for element, node in fields.items():
        if not node:
            out[element] = LEAF
            continue
        if element[0] == "f":
            field = named.get(element[2:])
            below = ensure_named_fields(node, field.schema if field is not None else other_schema or DEDUCED_SCHEMA)
            out[element] = {".": LEAF, **below} if field is not None else below
        else:
            items = schema.items if schema.shape is Shape.LIST else None
            out[element] = ensure_named_fields(node, items or DEDUCED_SCHEMA)
    return out
