"""Defaults: Go's two notions of an unset field, and rounding of quantities."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.api.groups.kind_model.defaults import (
    ensure_struct,
    fill_absent,
    fill_empty,
    list_items,
    round_resource_lists,
    round_resource_requirements,
)


def test_a_pointer_field_is_unset_if_it_is_nil() -> None:
    value: dict[str, Any] = {"zero": 0, "false": False, "empty": "", "null": None}

    fill_absent(value, {"zero": 1, "false": True, "empty": "x", "null": 2, "absent": 3})

    assert value == {"zero": 0, "false": False, "empty": "", "null": 2, "absent": 3}


def test_any_other_field_is_unset_if_it_is_zero() -> None:
    value: dict[str, Any] = {"zero": 0, "false": False, "empty": "", "set": 5}

    fill_empty(value, {"zero": 1, "false": True, "empty": "x", "set": 6})

    assert value == {"zero": 1, "false": True, "empty": "x", "set": 5}


def test_a_struct_is_created_once() -> None:
    value: dict[str, Any] = {"present": {"a": 1}, "null": None}

    ensure_struct(value, "new")["b"] = 2
    ensure_struct(value, "null")["c"] = 3

    assert ensure_struct(value, "present") is value["present"]
    assert value == {"present": {"a": 1}, "null": {"c": 3}, "new": {"b": 2}}


def test_a_list_that_is_absent_or_null_has_no_items() -> None:
    assert (list(list_items({}, "a")), list(list_items({"a": None}, "a"))) == ([], [])


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        ("1500u", "2m"),
        ("1n", "1m"),
        ("1000u", "1m"),
        ("1e-4", "1e-3"),
        ("250m", "250m"),
        ("1.5", "1.5"),
        ("1e3", "1e3"),
    ],
)
def test_amounts_finer_than_thousandths_are_rounded_up(text: str, rounded: str) -> None:
    holder = {"limits": {"cpu": text}}

    round_resource_lists(holder, "limits", "requests")

    assert holder == {"limits": {"cpu": rounded}}


def test_limits_and_requests_are_rounded_where_they_exist() -> None:
    container: dict[str, Any] = {"resources": {"limits": {"cpu": "1u"}, "requests": {"cpu": "2500u"}}}
    bare: dict[str, Any] = {"resources": None}

    round_resource_requirements(container)
    round_resource_requirements(bare)

    assert container["resources"] == {"limits": {"cpu": "1m"}, "requests": {"cpu": "3m"}}
    assert bare == {"resources": None}
