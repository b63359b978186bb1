"""Embedded objects in custom objects."""

from __future__ import annotations

from tests.api.custom.instances.widgets import METADATA

from batkube.api.custom.instances.embedded_objects import decode_embedded, validate_embedded
from batkube.api.custom.schemas.structural import parse_structural


def test_embedded_objects_are_decoded_and_validated() -> None:
    schema = parse_structural(
        {
            "type": "object",
            "properties": {
                "pod": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
        }
    )
    value = {"pod": {"kind": "Pod", "metadata": {"name": "a", "bogus": 1}, "spec": {"x": 1}}}

    assert decode_embedded(value, schema, METADATA) == ["pod.metadata.bogus"]
    assert value["pod"]["metadata"] == {"name": "a"}
    assert [error.field for error in validate_embedded(value, schema)] == ["pod.apiVersion"]
