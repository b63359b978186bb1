"""Validation of the defaults in a schema: they must have known fields only, and be valid themselves.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
"""

from __future__ import annotations

import copy

from batkube.api.custom.instances.cel_rules import RuleSet
from batkube.api.custom.instances.embedded_objects import validate_embedded
from batkube.api.custom.instances.pruning import prune_embedded_value
from batkube.api.custom.instances.value_validation import validate_value
from batkube.api.custom.schemas.structural import META_FIELDS, StructuralSchema
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.problems import Problems


def validate_defaults(schema: StructuralSchema, path: str) -> list[FieldError]:
    """Validate the defaults of a version's schema, which is modified in place."""
    for node in schema.nodes():
        if node.int_or_string:
            # kube-apiserver does not require one of the two types here.
            node.types = (node.type,) if node.type else ()
    schema.embedded = True
    problems = Problems()
    _check_schema(schema, path, problems, inside_metadata=False)
    return problems


def _check_schema(schema: StructuralSchema, path: str, problems: Problems, *, inside_metadata: bool) -> None:
    if schema.default is not None:
        if not inside_metadata and isinstance(schema.default, dict | list):
            pruned = copy.deepcopy(schema.default)
            prune_embedded_value(pruned, schema)
            if pruned != schema.default:
                problems.invalid(f"{path}.default", schema.default, "must not have unknown fields")
        problems += _validate_default(schema, f"{path}.default")
    if schema.items is not None:
        _check_schema(schema.items, f"{path}.items", problems, inside_metadata=inside_metadata)
    for name, part in schema.properties.items():
        inside = name in META_FIELDS if schema.embedded else inside_metadata
        _check_schema(part, f"{path}.properties[{name}]", problems, inside_metadata=inside)


def _validate_default(schema: StructuralSchema, path: str) -> list[FieldError]:
    """Validate a default as a value; stop at the first kind of rule that it violates."""
    return (
        validate_embedded(schema.default, schema, path)
        or validate_value(schema, schema.default, path)
        or RuleSet(schema, is_resource=schema.embedded).validate(schema.default, None, path)
    )
