"""Defaults of custom objects."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from tests.api.custom.instances.widgets import json_values, kind, widget


@given(json_values)
def test_pruning_and_defaulting_twice_equals_once(spec: Any) -> None:  # noqa: ANN401
    custom = kind()
    value = widget(spec=spec)

    custom.prune_and_default(value)
    once = copy.deepcopy(value)
    unknown = custom.prune_and_default(value)

    assert value == once
    assert unknown == []
