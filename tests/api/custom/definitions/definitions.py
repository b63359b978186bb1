"""CustomResourceDefinitions with some schema, and the errors found in schemas."""

from __future__ import annotations

from typing import Any

from batkube.api.custom.definitions.strategy import (
    prepare_definition_create,
    set_definition_defaults,
    validate_definition,
)

FREE_FORM = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str = "v1", schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    schema = FREE_FORM if schema is None else schema
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    value = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": list(versions) or [version()],
            **spec,
        },
    }
    set_definition_defaults(value)
    prepare_definition_create(value)
    return value


def problems(*properties: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the paths (below the schema) and messages of the errors in a schema with these properties."""
    value = definition(version(schema={"type": "object", "properties": dict(properties)}))
    prefix = "spec.validation.openAPIV3Schema."
    return [(error.field.removeprefix(prefix), error.message) for error in validate_definition(value, None)]
