"""Schemas: keys of map lists."""

from __future__ import annotations

from tests.api.custom.definitions.definitions import problems


def test_keys_of_a_map_list_must_be_required_or_have_defaults() -> None:
    items = {"type": "object", "properties": {"k": {"type": "string"}}}
    listed = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }

    assert [field for field, _ in problems(("a", listed))] == ["properties[a].items.properties[k].default"]
    assert problems(("a", {**listed, "items": {**items, "required": ["k"]}})) == []
