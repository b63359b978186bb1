"""Validation of list items by their schema."""

from __future__ import annotations

import pytest

from batkube.api.managed_fields.typed_validation import validate
from batkube.api.managed_fields.typed_values import SchemaMismatch
from batkube.cluster.schemas import Field, Schema, Shape


def test_an_item_without_any_key_is_rejected() -> None:
    item = Schema(Shape.STRUCT, fields={"name": Field("name", Schema(Shape.STRING))})
    items = Schema(Shape.LIST, items=item, list_type="map", list_keys=("name",))
    with pytest.raises(SchemaMismatch) as raised:
        validate([{}], items)
    assert str(raised.value) == (
        'element 0: associative list with keys has an element that omits all key fields ["name"] '
        "(and doesn't have default values for any key fields)"
    )
