"""Defaults in a schema must be good values themselves: known fields only, and valid.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
"""

from __future__ import annotations

import copy

from batkube.api.custom.pruning import prune_part
from batkube.api.custom.rules import RuleSet
from batkube.api.custom.structural import META_FIELDS, Structural
from batkube.api.custom.validating import schema_errors
from batkube.api.field_errors import FieldError
from batkube.api.validation.problems import Problems


def default_problems(schema: Structural, path: str) -> list[FieldError]:
    """Return what is wrong with the defaults of a version's schema."""
    for node in schema.nodes():
        if node.int_or_string:
            # The real server does not look at the type of such defaults.
            node.types = ()
    problems = Problems()
    _check(schema, path, problems, is_resource=True, inside_metadata=False)
    return problems


def _check(schema: Structural, path: str, problems: Problems, *, is_resource: bool, inside_metadata: bool) -> None:
    is_resource = is_resource or schema.embedded
    if schema.default is not None:
        if not inside_metadata and isinstance(schema.default, dict | list):
            pruned = copy.deepcopy(schema.default)
            prune_part(pruned, schema)
            if pruned != schema.default:
                problems.invalid(f"{path}.default", schema.default, "must not have unknown fields")
        found = schema_errors(schema, schema.default, f"{path}.default")
        problems += found or RuleSet(schema, is_resource=is_resource).errors(schema.default, None, f"{path}.default")
    if schema.items is not None:
        _check(schema.items, f"{path}.items", problems, is_resource=False, inside_metadata=inside_metadata)
    for name, part in schema.properties.items():
        inside = (inside_metadata and not schema.embedded) or (is_resource and name in META_FIELDS)
        _check(part, f"{path}.properties[{name}]", problems, is_resource=False, inside_metadata=inside)
