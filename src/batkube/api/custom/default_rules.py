"""Defaults in a schema must be good values themselves: known fields only, and valid.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
"""

from __future__ import annotations

import copy

from batkube.api.custom.embedded import embedded_errors
from batkube.api.custom.pruning import prune_part
from batkube.api.custom.rules import RuleSet
from batkube.api.custom.structural import META_FIELDS, Structural
from batkube.api.custom.validating import schema_errors
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.problems import Problems


def default_problems(schema: Structural, path: str) -> list[FieldError]:
    """Return what is wrong with the defaults of a version's schema, which is edited on the way."""
    for node in schema.nodes():
        if node.int_or_string:
            # The real server does not ask for one of the two types here.
            node.types = (node.type,) if node.type else ()
    schema.embedded = True
    problems = Problems()
    _check(schema, path, problems, inside_metadata=False)
    return problems


def _check(schema: Structural, path: str, problems: Problems, *, inside_metadata: bool) -> None:
    if schema.default is not None:
        if not inside_metadata and isinstance(schema.default, dict | list):
            pruned = copy.deepcopy(schema.default)
            prune_part(pruned, schema)
            if pruned != schema.default:
                problems.invalid(f"{path}.default", schema.default, "must not have unknown fields")
        problems += _value_problems(schema, f"{path}.default")
    if schema.items is not None:
        _check(schema.items, f"{path}.items", problems, inside_metadata=inside_metadata)
    for name, part in schema.properties.items():
        inside = name in META_FIELDS if schema.embedded else inside_metadata
        _check(part, f"{path}.properties[{name}]", problems, inside_metadata=inside)


def _value_problems(schema: Structural, path: str) -> list[FieldError]:
    """Return what is wrong with a default as a value; the next kind of rule counts only if the one before is kept."""
    return (
        embedded_errors(schema.default, schema, path)
        or schema_errors(schema, schema.default, path)
        or RuleSet(schema, is_resource=schema.embedded).errors(schema.default, None, path)
    )
