"""Pruning of unknown fields and nulls."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from tests.api.custom.instances.widgets import SCHEMA, json_values, widget

from batkube.api.custom.instances.defaults import fill_defaults
from batkube.api.custom.instances.pruning import drop_nulls, prune
from batkube.api.custom.schemas.structural import parse_structural


@given(json_values)
def test_pruning_only_removes_fields_and_reports_each(spec: Any) -> None:  # noqa: ANN401
    value = widget(spec=copy.deepcopy(spec))

    unknown = prune(value, parse_structural(SCHEMA))

    assert unknown == sorted(unknown)
    assert (value["spec"] == spec) == (not unknown)


def test_unknown_fields_are_pruned_except_where_preserved() -> None:
    value = widget(spec={"bogus": 1, "free": {"a": {"b": 1}}, "list": [{"y": "1", "q": 2}], "map": {"k": {"z": 1}}})

    unknown = prune(value, parse_structural(SCHEMA))

    assert unknown == ["spec.bogus", "spec.list[0].q", "spec.map.k.z"]
    assert value["spec"] == {"free": {"a": {"b": 1}}, "list": [{"y": "1"}], "map": {"k": {}}}


def test_a_disallowed_null_is_dropped_or_replaced_by_the_default() -> None:
    schema = parse_structural(SCHEMA)
    value = widget(spec={"size": None, "note": None, "list": None, "map": {"a": {"x": None}}})

    drop_nulls(value, schema)
    fill_defaults(value, schema)

    assert value["spec"] == {"size": 3, "note": None, "map": {"a": {"x": 9}}}
