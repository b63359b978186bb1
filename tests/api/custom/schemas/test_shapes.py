"""The shape of custom objects, by their schema."""

from __future__ import annotations

from tests.api.custom.instances.widgets import METADATA

from batkube.api.custom.schemas.shapes import custom_object_schema
from batkube.api.custom.schemas.structural import parse_structural
from batkube.cluster.schemas import Shape


def test_the_schema_defines_how_lists_and_maps_merge() -> None:
    items = {"type": "object", "properties": {"k": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "keyed": {
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            "plain": {"type": "array", "items": {"type": "string"}},
            "whole": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "additionalProperties": {"type": "string"},
            },
            "free": {"type": "object"},
        },
    }

    shape = custom_object_schema(parse_structural(schema), METADATA)

    fields = {name: field.schema for name, field in shape.fields.items()}
    assert (fields["keyed"].list_type, fields["keyed"].list_keys) == ("map", ("k",))
    assert fields["plain"].list_type == "atomic"
    assert (fields["whole"].shape, fields["whole"].atomic) == (Shape.MAP, True)
    assert fields["free"].keeps_unknown
    assert fields["metadata"] is METADATA
