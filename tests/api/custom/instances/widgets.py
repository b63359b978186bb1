"""Custom objects of the kind Widget, and their schema."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from batkube.api.custom.instances.custom_kind import CustomKind
from batkube.api.custom.schemas.shapes import custom_object_schema
from batkube.api.custom.schemas.structural import parse_structural
from batkube.cluster.kinds import KindTable, Resource

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3},
                "note": {"type": "string", "nullable": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer", "default": 9}}},
                },
                "list": {"type": "array", "items": {"type": "object", "properties": {"y": {"type": "string"}}}},
            },
        }
    },
}


METADATA = KindTable.builtin().definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "5%"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["size", "note", "free", "map", "list", "x", "y", "z"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def kind(schema: dict[str, Any] = SCHEMA, **version: Any) -> CustomKind:  # noqa: ANN401
    whole = parse_structural(schema)
    resource = Resource(
        "example.com", "v1", "Widget", "widgets", "widget", True, (), custom_object_schema(whole, METADATA), custom=True
    )
    return CustomKind(resource, {"v1": whole}, METADATA, {"served": True, **version}, "", schema_is_original=True)


def widget(**parts: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        **parts,
    }
