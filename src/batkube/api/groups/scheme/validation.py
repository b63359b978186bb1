"""Validation of the built-in kinds, with the errors of kube-apiserver in its order.

Every kind has its `ValidationRules`; the checks that are common to all objects are added here. Objects are decoded and
defaulted, and validation does not modify them.

Kubernetes: pkg/apis/*/validation and the Validate functions of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.scheme.catalogue import kind_of
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.metadata import check_common_update, check_metadata, check_name
from batkube.api.validation.names import path_segment, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import ValidationRules, metadata_only
from batkube.cluster.kinds import Resource

#: The rules of kinds without rules of their own.
_DEFAULT_RULES = {
    namespaced: ValidationRules(metadata_only(subdomain_name, namespaced)) for namespaced in (True, False)
}


def _rules_of(resource: Resource) -> ValidationRules:
    return kind_of(resource.group_resource).rules or _DEFAULT_RULES[resource.namespaced]


def validate_create(resource: Resource, value: Mapping[str, Any]) -> list[FieldError]:
    """Validate a new object."""
    problems, rules, meta = Problems(), _rules_of(resource), value["metadata"]
    rules.create(value, problems)
    if not problems:
        # All names must be valid path segments of a URL, whatever the kind's rules allow (rest.BeforeCreate).
        if rules.covers_metadata:
            check_name(meta, path_segment, problems)
        else:
            check_metadata(meta, path_segment, resource.namespaced, problems)
    return problems


def validate_update(
    resource: Resource, new: Mapping[str, Any], old: Mapping[str, Any], subresource: str = ""
) -> list[FieldError]:
    """Validate an updated object and its changes; `subresource` may have rules of its own."""
    problems = Problems()
    check_common_update(new["metadata"], old["metadata"], resource.namespaced, problems)
    rules = _rules_of(resource)
    check = rules.status if subresource == "status" else rules.subresources.get(subresource, rules.update)
    check(new, old, problems)
    return problems


def validate_scale(scale: Mapping[str, Any]) -> list[FieldError]:
    """Validate a Scale (Kubernetes: pkg/apis/autoscaling/validation, ValidateScale)."""
    problems = Problems()
    check_metadata(scale["metadata"], subdomain_name, True, problems)
    problems.not_negative("spec.replicas", scale.get("spec", {}).get("replicas", 0))
    return problems
