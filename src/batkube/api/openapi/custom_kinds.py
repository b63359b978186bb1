"""OpenAPI schemas of custom kinds: the schema of the CustomResourceDefinition plus the common object fields.

Kubernetes: apiextensions-apiserver/pkg/controller/openapi/builder.
"""

from __future__ import annotations

from typing import Any

from batkube.api.openapi.schema_writer import SchemaWriter
from batkube.cluster.kinds import KindTable, Resource

Document = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
#: Built-in definitions whose descriptions of apiVersion, kind and metadata are used for custom kinds and lists.
_MODEL_KIND, _MODEL_LIST = "io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.PodList"
#: Keywords that version 2 does not support.
_ONLY_IN_V3 = ("allOf", "anyOf", "oneOf", "not", "nullable", "default")


def definition_name(resource: Resource, kind: str) -> str:
    """Return the name of the definition of a custom kind: `com.example.v1.Widget`."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, kind])


def custom_kind_references(
    version: int, schemas: SchemaWriter, resource: Resource, raw: Document, table: KindTable
) -> tuple[Document, Document]:
    """Return references to the schemas of a custom kind and its list; add both to `schemas`."""
    schema: Document = {"type": "object", **(raw if version == 3 else _to_version_2(raw))}
    metadata = schemas.reference(table.definition(_META + "ObjectMeta"))
    if not raw or (version == 2 and raw.get("x-kubernetes-preserve-unknown-fields")):
        # kubectl rejects fields that a version 2 schema does not list, so a kind with unknown fields lists none.
        schema = {"type": "object"}
    else:
        wrapped = {"allOf": [metadata]} if version == 3 else metadata
        schema["properties"] = {**schema.get("properties", {}), **_common_fields(schemas, _MODEL_KIND, wrapped)}
    kind = schemas.named_reference(definition_name(resource, resource.kind), schema)
    listed: Document = {
        "type": "object",
        "required": ["items"],
        "properties": {
            **_common_fields(schemas, _MODEL_LIST, schemas.reference(table.definition(_META + "ListMeta"))),
            "items": {"type": "array", "items": kind},
        },
    }
    return kind, schemas.named_reference(definition_name(resource, resource.list_kind), listed)


def _common_fields(schemas: SchemaWriter, like: str, metadata: Document) -> Document:
    """Return the common fields of objects, with the descriptions of the built-in definition `like`."""
    descriptions = schemas.descriptions.get(like, {})
    fields = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": metadata}
    return {
        name: {**({"description": descriptions[name]} if name in descriptions else {}), **fields[name]}
        for name in fields
    }


def _to_version_2(raw: Document) -> Document:
    """Return a schema without keywords that version 2 lacks, and without a type where several are possible."""
    loose = raw.get("x-kubernetes-preserve-unknown-fields") or raw.get("x-kubernetes-int-or-string")
    dropped = (*_ONLY_IN_V3, "type", "properties") if loose else _ONLY_IN_V3
    document = {key: value for key, value in raw.items() if key not in dropped}
    for key in ("items", "additionalProperties"):
        if isinstance(document.get(key), dict):
            document[key] = _to_version_2(document[key])
    if "properties" in document:
        document["properties"] = {name: _to_version_2(inner) for name, inner in document["properties"].items()}
    return document
