"""Sets of fields of an object, which record what a manager owns.

A set is stored as the dictionary that clients see in `metadata.managedFields[].fieldsV1`, a tree of path elements:

    {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}}}}}

An element is a field (`f:name`), a list item by its keys (`k:{…}`), a list item by its value (`v:…`) or by its index
(`i:…`). A node that is empty, or contains ".", is itself in the set; other nodes only lead to members. Sets are
immutable, so that all objects can share equal ones (`interned`).

Kubernetes: structured-merge-diff, fieldpath/serialize.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from batkube.kernel.memo import memoized
from batkube.text.go_format import go_quote, go_value

FieldSet = dict[str, Any]
"""A tree of path elements, each with the set below it. The empty dictionary is the empty set."""

LEAF: FieldSet = {}
"""The node of a path that is in the set and has no members below it."""

EMPTY_SET: FieldSet = {}
"""The empty set."""

encode = msgspec.json.Encoder(order="sorted").encode
"""Encodes a set as bytes, which are the same for equal sets."""

_KIND_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}


def is_member(node: FieldSet) -> bool:
    """Return whether the path that leads to `node` is itself in the set."""
    return not node or "." in node


def contains(fields: FieldSet, *path: str) -> bool:
    """Return whether the path of these elements is in the set."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return node is not None and is_member(node)


def union(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths that are in either set."""
    if not first or not second:
        return first or second
    both = dict(first)
    for element, node in second.items():
        present = both.get(element)
        both[element] = node if present is None else _node_union(present, node)
    return both


def _node_union(first: FieldSet, second: FieldSet) -> FieldSet:
    if first is second:
        return first
    both = union(first, second)
    if both and "." not in both and (not first or not second):
        return {".": LEAF, **both}
    return both


def difference(fields: FieldSet, others: FieldSet) -> FieldSet:
    """Return the paths of `fields` that are not in `others`; each path counts separately, without those below it."""
    if not others or not fields:
        return fields
    left = {}
    for element, node in fields.items():
        other = others.get(element)
        rest = node if other is None else _node_difference(node, other)
        if rest is not None:
            left[element] = rest
    return left


def _node_difference(node: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return what remains of a node, or None."""
    below = difference({element: child for element, child in node.items() if element != "."}, other)
    return _node_with(below, is_itself_member=is_member(node) and not is_member(other))


def _node_with(below: FieldSet, *, is_itself_member: bool) -> FieldSet | None:
    """Return the node of a path, given the set below it; None if neither has members."""
    if is_itself_member:
        return {".": LEAF, **below} if below else LEAF
    return below or None


def intersection(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths that are in both sets."""
    both = {}
    if first and second:
        for element, node in first.items():
            other = second.get(element)
            common = None if other is None else _node_intersection(node, other)
            if common is not None:
                both[element] = common
    return both


def _node_intersection(first: FieldSet, second: FieldSet) -> FieldSet | None:
    below = intersection(first, second)
    below.pop(".", None)
    return _node_with(below, is_itself_member=is_member(first) and is_member(second))


def without(fields: FieldSet, excluded: FieldSet) -> FieldSet:
    """Return the paths of `fields` that are neither in `excluded` nor below a path in it."""
    left = {}
    for element, node in fields.items():
        other = excluded.get(element)
        if other is None:
            left[element] = node
        elif not is_member(other):
            rest = without(node, other)
            if rest or not node:
                left[element] = _normalized(rest)
    return left


def _normalized(node: FieldSet) -> FieldSet:
    """Return the node in canonical form: a node without members below it is LEAF."""
    return LEAF if len(node) == 1 and "." in node else node


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Yield every path of the set in kube-apiserver's order: the paths of a level before those below them."""
    ordered = sorted((element for element in fields if element != "."), key=_sort_key)
    for element in ordered:
        if is_member(fields[element]):
            yield (element,)
    for element in ordered:
        for rest in paths(fields[element]):
            yield (element, *rest)


def _sort_key(element: str) -> tuple[Any, ...]:
    """Return the sort key of an element, as in fieldpath.PathElement.Compare: fields, keys, values, indices."""
    kind, text = element[0], element[2:]
    if kind == "f":
        return (0, text)
    value = json.loads(text)
    parts = sorted(value.items()) if kind == "k" else [("", value)]
    return (_KIND_ORDER[kind], [(name, *_value_order(part)) for name, part in parts])


def _value_order(value: object) -> tuple[int, Any]:
    """Return the sort key of a value, as in value.Compare: numbers, strings, booleans, then all others."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, escaped_json(value))


def path_text(path: tuple[str, ...]) -> str:
    """Format a path as error messages do: `.spec.containers[name="main"].image`."""
    return "".join(element_text(element) for element in path)


def element_text(element: str) -> str:
    """Format one path element as error messages do."""
    kind, text = element[0], element[2:]
    if kind == "f":
        return "." + text
    if kind == "k":
        return "[" + ",".join(f"{name}={_value_text(value)}" for name, value in json.loads(text).items()) + "]"
    return f"[={_value_text(json.loads(text))}]" if kind == "v" else f"[{text}]"


def _value_text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ",".join(map(_value_text, value)) + "]"
    if isinstance(value, dict):
        return "".join(f"{name}={_value_text(item)}" for name, item in value.items())
    return go_quote(value) if isinstance(value, str) else go_value(value)


@memoized(2048)
def key_element(name: str, value: str) -> str:
    """Return the path element of the list item whose field `name` has this value."""
    return keys_element({name: value})


def keys_element(keys: dict[str, Any]) -> str:
    """Return the path element of the list item whose fields have these values."""
    return "k:" + escaped_json(keys)


def value_element(value: object) -> str:
    """Return the path element of an item of a set."""
    return _json_element(value) if isinstance(value, str) else "v:" + escaped_json(value)


@memoized(2048)
def _json_element(value: str) -> str:
    return "v:" + escaped_json(value)


def escaped_json(value: object) -> str:
    """Encode JSON as Go does: compact, keys sorted, HTML characters escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@memoized(4096, longest=16_384)
def interned(encoded: bytes) -> FieldSet:
    """Return the shared set with this encoding (`encode`), its elements sorted.

    Thousands of pods of one template differ in values, not in fields: they all refer to one set. An LRU cache keeps a
    few thousand sets and their parts, since many sets differ only slightly.
    """
    decoded = msgspec.json.decode(encoded)
    return {element: interned(encode(node)) if node else LEAF for element, node in decoded.items()}


def parse_fields_v1(raw: object) -> FieldSet:
    """Parse a client's `fieldsV1`; raises ValueError if it is malformed.

    Elements of unknown types are dropped, as in kube-apiserver, for compatibility with newer versions.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"{raw!r} is not a set of fields")
    node: FieldSet = {}
    for element, below in raw.items():
        if element == ".":
            node["."] = LEAF
            continue
        parsed = _parse_element(element)
        if parsed is not None:
            node[parsed] = _normalized(parse_fields_v1(below))
    return node


def _parse_element(element: str) -> str | None:
    kind, separator, text = element[:1], element[1:2], element[2:]
    if separator != ":":
        raise ValueError(f"path element {element!r} lacks its colon")
    if kind == "f":
        return element
    if kind == "i":
        return f"i:{int(text)}"
    if kind == "v":
        return "v:" + escaped_json(json.loads(text))
    if kind != "k":
        return None
    keys = json.loads(text)
    if not isinstance(keys, dict):
        raise ValueError(f"path element {element!r} holds no keys")
    return keys_element(keys)
