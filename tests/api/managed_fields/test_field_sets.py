from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.managed_fields.field_sets import (
    FieldSet,
    contains,
    difference,
    encode,
    interned,
    intersection,
    key_element,
    parse_fields_v1,
    path_text,
    paths,
    union,
    value_element,
    without,
)

Path = tuple[str, ...]

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'k:{"port":80}', 'v:"s"', "v:1"])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.frozensets(PATHS, max_size=12)


def tree(members: frozenset[Path]) -> FieldSet:
    """Build the tree of a set of paths, one path after the other."""
    root: FieldSet = {}
    for path in sorted(members):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return with_plain_leaves(root)


def with_plain_leaves(node: FieldSet) -> FieldSet:
    return {} if node.keys() == {"."} else {element: with_plain_leaves(below) for element, below in node.items()}


def members(fields: FieldSet) -> frozenset[Path]:
    return frozenset(paths(fields))


@given(SETS)
def test_a_set_contains_the_paths_it_was_made_of(first: frozenset[Path]) -> None:
    assert members(tree(first)) == first
    assert all(contains(tree(first), *path) for path in first)


@given(SETS, SETS)
def test_set_operations_equal_those_on_sets_of_paths(first: frozenset[Path], second: frozenset[Path]) -> None:
    one, other = tree(first), tree(second)
    assert union(one, other) == tree(first | second)
    assert intersection(one, other) == tree(first & second)
    assert difference(one, other) == tree(first - second)


@given(SETS, SETS)
def test_without_removes_everything_below(first: frozenset[Path], second: frozenset[Path]) -> None:
    below = {path for path in first if any(path[: len(cut)] == cut for cut in second)}
    assert without(tree(first), tree(second)) == tree(first - below)


@given(SETS)
def test_a_set_parses_from_its_own_json(first: frozenset[Path]) -> None:
    assert parse_fields_v1(json.loads(encode(tree(first)))) == tree(first)


@given(SETS)
def test_equal_sets_are_shared(first: frozenset[Path]) -> None:
    one, other = tree(first), dict(reversed(tree(first).items()))
    assert interned(encode(one)) == one
    assert interned(encode(one)) is interned(encode(other))


def test_parts_of_different_sets_are_shared() -> None:
    first = interned(encode({"f:spec": {"f:a": {}}, "f:status": {'k:{"ip":"10.0.0.1"}': {}}}))
    second = interned(encode({"f:spec": {"f:a": {}}, "f:status": {'k:{"ip":"10.0.0.2"}': {}}}))
    assert first["f:spec"] is second["f:spec"]


def test_paths_are_ordered_by_level_with_numbers_as_numbers() -> None:
    fields: FieldSet = {
        'k:{"port":8080}': {".": {}, "f:x": {}},
        'k:{"port":443}': {},
        "f:z": {"f:deep": {}},
        "v:1": {},
        "f:a": {},
    }
    assert [path_text(path) for path in paths(fields)] == [
        ".a",
        "[port=443]",
        "[port=8080]",
        "[=1]",
        ".z.deep",
        "[port=8080].x",
    ]


def test_elements_are_encoded_as_json_of_go() -> None:
    assert key_element("name", "a<b>&c") == 'k:{"name":"a\\u003cb\\u003e\\u0026c"}'
    assert value_element(True) == "v:true"
    assert value_element(1) == "v:1"
    assert path_text(('k:{"ip":"10.0.0.1","n":2}', 'v:"x"', "i:3")) == '[ip="10.0.0.1",n=2][="x"][3]'


def test_keys_from_clients_are_sorted() -> None:
    assert parse_fields_v1({'k:{"protocol": "TCP", "port": 80}': {".": {}}}) == {'k:{"port":80,"protocol":"TCP"}': {}}


def test_elements_of_unknown_kinds_are_dropped() -> None:
    assert parse_fields_v1({"f:a": {"x:new": {}, "f:b": {}}}) == {"f:a": {"f:b": {}}}


@pytest.mark.parametrize(
    "raw", [{"a": {}}, {"": {}}, {"k:[]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}, {"f:a": 1}, 5]
)
def test_malformed_sets_are_rejected(raw: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any problem of the client's
        parse_fields_v1(raw)
