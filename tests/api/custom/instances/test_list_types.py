"""Lists of type set and map."""

from __future__ import annotations

from batkube.api.custom.instances.list_types import validate_list_types
from batkube.api.custom.schemas.structural import parse_structural


def test_each_duplicate_in_set_and_map_lists_is_reported_once() -> None:
    keyed = {"type": "object", "properties": {"k": {"type": "string"}}}
    schema = parse_structural(
        {
            "type": "object",
            "properties": {
                "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
                "map": {
                    "type": "array",
                    "items": keyed,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                },
            },
        }
    )

    errors = validate_list_types(schema, {"set": [1, 2, 1, 1], "map": [{"k": "a"}, {"k": "a"}, {"k": "b"}]})

    assert [(error.field, error.message) for error in errors] == [
        ("set[2]", "Duplicate value: 1"),
        ("map[1]", 'Duplicate value: {"k":"a"}'),
    ]
