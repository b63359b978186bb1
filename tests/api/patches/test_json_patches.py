"""JSON Patch and JSON merge patch: properties, and deviations of Kubernetes' library from the RFCs."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.patches.json_patches import (
    COPIED_BYTES_LIMIT,
    PatchError,
    apply_json_patch,
    json_equal,
    unknown_fields,
)
from batkube.api.patches.merge_patches import apply_merge_patch

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text(alphabet="ab~/", max_size=3)
KEYS = st.text(alphabet="ab~/", min_size=1, max_size=2)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)
WITHOUT_NULLS = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text(alphabet="ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
)


def pointer(*parts: str) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def create_merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest merge patch from `old` to `new`."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key in old and isinstance(old[key], dict) and isinstance(value, dict):
            if inner := create_merge_patch(old[key], value):
                patch[key] = inner
        elif key not in old or not json_equal(old[key], value):
            patch[key] = value
    return patch


@given(
    st.dictionaries(KEYS, WITHOUT_NULLS, max_size=4),
    st.dictionaries(KEYS, WITHOUT_NULLS, max_size=4),
)
def test_a_generated_merge_patch_yields_the_new_object(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy(old)

    assert apply_merge_patch(old, create_merge_patch(old, new)) == new
    assert old == before


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_is_idempotent(value: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply_merge_patch(value, patch)

    assert apply_merge_patch(once, patch) == once or any_null_in_lists(patch)


def any_null_in_lists(value: object) -> bool:
    """Nulls in a list that replaces another type are kept by the first patch, and dropped by the second."""
    if isinstance(value, dict):
        return any(any_null_in_lists(item) for item in value.values())
    return isinstance(value, list) and "None" in repr(value)


@given(OBJECTS, KEYS, JSON)
def test_an_added_value_can_be_tested_and_removed(value: dict[str, Any], key: str, new: object) -> None:
    before = copy.deepcopy(value)
    where = pointer(key)

    added = apply_json_patch(
        value, [{"op": "add", "path": where, "value": new}, {"op": "test", "path": where, "value": new}]
    )

    assert json_equal(added, {**value, key: new})
    assert apply_json_patch(added, [{"op": "remove", "path": where}]) == {k: v for k, v in value.items() if k != key}
    assert value == before


@given(st.lists(SCALARS, min_size=1, max_size=5), st.data())
def test_moving_within_a_list_there_and_back_changes_nothing(items: list[Any], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(items) - 1))
    second = data.draw(st.integers(0, len(items) - 1))
    there = {"op": "move", "from": f"/l/{first}", "path": f"/l/{second}"}
    back = {"op": "move", "from": f"/l/{second}", "path": f"/l/{first}"}

    assert apply_json_patch({"l": items}, [there, back]) == {"l": items}


@given(OBJECTS, KEYS, KEYS)
def test_a_copy_leaves_two_equal_values(value: dict[str, Any], key: str, other: str) -> None:
    copied = apply_json_patch(value, [{"op": "copy", "from": pointer(key), "path": pointer(other)}])

    assert json_equal(copied[other], value.get(key))


@given(
    st.lists(st.dictionaries(st.sampled_from(["op", "path", "from", "value"]), JSON, max_size=4), max_size=3), OBJECTS
)
def test_any_operations_apply_or_are_rejected(operations: list[dict[str, Any]], value: dict[str, Any]) -> None:
    before = copy.deepcopy(value)

    with contextlib.suppress(PatchError):
        apply_json_patch(value, operations)

    assert value == before


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/l/-", "value": 9}, {"l": [1, 2, 9], "d": {"k": "v"}}),
        ({"op": "add", "path": "/l/-1", "value": 9}, {"l": [1, 2, 9], "d": {"k": "v"}}),
        ({"op": "replace", "path": "/l/-1", "value": 9}, {"l": [1, 9], "d": {"k": "v"}}),
        ({"op": "add", "path": "/l/01", "value": 9}, {"l": [1, 9, 2], "d": {"k": "v"}}),
        ({"op": "replace", "path": "/d/new", "value": 9}, {"l": [1, 2], "d": {"k": "v", "new": 9}}),
        ({"op": "add", "path": "ignored/l", "value": 9}, {"l": 9, "d": {"k": "v"}}),
        ({"op": "add", "path": "/d/k"}, {"l": [1, 2], "d": {"k": None}}),
        ({"op": "copy", "from": "/d/missing", "path": "/d/k"}, {"l": [1, 2], "d": {"k": None}}),
        ({"op": "replace", "path": "", "value": {"new": 1}}, {"new": 1}),
        ({"op": "replace", "path": "", "value": 5}, {"l": [1, 2], "d": {"k": "v"}}),
        ({"op": "test", "path": "/d/missing", "value": None}, {"l": [1, 2], "d": {"k": "v"}}),
    ],
)
def test_the_library_of_kubernetes_is_more_lenient_than_the_rfc(operation: dict[str, Any], result: object) -> None:
    assert apply_json_patch({"l": [1, 2], "d": {"k": "v"}}, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/l/9"},
        {"op": "remove", "path": "/l/-"},
        {"op": "remove", "path": "/d/missing"},
        {"op": "add", "path": "/l/9", "value": 1},
        {"op": "add", "path": "/l/x", "value": 1},
        {"op": "add", "path": "/missing/k", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "d", "value": {}},
        {"op": "test", "path": "/d/k", "value": "other"},
        {"op": "test", "path": "/l/0", "value": True},
        {"op": "test", "path": "/l/0", "value": 1.0},
        {"op": "move", "from": "/d", "path": "/d/k"},
        {"op": "bogus", "path": "/d/k"},
        {"path": "/d/k"},
        {"op": "add"},
    ],
)
def test_an_operation_that_does_not_apply_is_rejected(operation: dict[str, Any]) -> None:
    with pytest.raises(PatchError) as refusal:
        apply_json_patch({"l": [1, 2], "d": {"k": "v"}}, [operation])

    assert refusal.value.code == 422


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ({}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([1], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": True}], "json: cannot unmarshal bool into Go struct field jsonPatchOp.op of type string"),
    ],
)
def test_a_malformed_json_patch_is_rejected(patch: object, problem: str) -> None:
    with pytest.raises(PatchError) as refusal:
        apply_json_patch({}, patch)

    assert (refusal.value.code, refusal.value.message) == (400, f"error decoding patch: {problem}")


def test_a_malformed_merge_patch_is_rejected() -> None:
    with pytest.raises(PatchError, match=r"^Invalid JSON Patch$"):
        apply_merge_patch({}, None)
    with pytest.raises(PatchError, match="cannot unmarshal array into Go value of type map"):
        apply_merge_patch({}, [])


@pytest.mark.parametrize(
    ("patch", "code", "problem"),
    [
        ({}, 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ([1], 400, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        ([{"op": 5, "path": "/a"}], 422, "Unexpected kind: unknown"),
    ],
)
def test_without_field_validation_a_json_patch_is_decoded_once(patch: object, code: int, problem: str) -> None:
    with pytest.raises(PatchError) as refusal:
        apply_json_patch({}, patch, checks=False)

    assert (refusal.value.code, refusal.value.message) == (code, problem)


def test_without_field_validation_a_list_may_replace_the_object() -> None:
    assert apply_merge_patch({"a": 1}, [{"b": None}], checks=False) == [{}]
    with pytest.raises(PatchError, match=r"^Invalid JSON Patch$"):
        apply_merge_patch({}, 5, checks=False)


def test_unknown_members_of_an_operation_are_reported() -> None:
    patch = [{"op": "add", "path": "/a", "value": 1}, {"op": "test", "extra": 1}]

    assert unknown_fields(patch) == ['json patch unknown field "[1].extra"']


def test_a_patch_that_keeps_doubling_an_object_is_rejected() -> None:
    grow = {"op": "copy", "from": "/a", "path": "/a/-"}
    large = {"a": ["x" * (COPIED_BYTES_LIMIT // 8)]}

    with pytest.raises(PatchError) as refusal:
        apply_json_patch(large, [grow] * 30)

    assert refusal.value.code == 422
