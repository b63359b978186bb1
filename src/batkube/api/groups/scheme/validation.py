"""Validation of the built-in kinds: what is wrong with an object, in the words and the order of the real server.

Every kind has its `ValidationRules`; what the server checks of every object is added here. Objects come decoded and
with
defaults; nothing here changes them. Kubernetes: pkg/apis/*/validation and the Validate functions of
pkg/registry/*/*/strategy.go.
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

#: For kinds without rules of their own.
_DEFAULT_RULES = {
    namespaced: ValidationRules(metadata_only(subdomain_name, namespaced)) for namespaced in (True, False)
}


def _rules_of(resource: Resource) -> ValidationRules:
    return kind_of(resource.group_resource).rules or _DEFAULT_RULES[resource.namespaced]


def validate_create(resource: Resource, value: Mapping[str, Any]) -> list[FieldError]:
    """Return what is wrong with a new object."""
    problems, rules, meta = Problems(), _rules_of(resource), value["metadata"]
    rules.create(value, problems)
    if not problems:
        # What a kind's own rules let pass must still fit into a URL (rest.BeforeCreate).
        if rules.covers_metadata:
            check_name(meta, path_segment, problems)
        else:
            check_metadata(meta, path_segment, resource.namespaced, problems)
    return problems


def validate_update(
    resource: Resource, new: Mapping[str, Any], old: Mapping[str, Any], subresource: str = ""
) -> list[FieldError]:
    """Return what is wrong with a changed object, or with how it changed; `subresource` may have rules of its own."""
    problems = Problems()
    check_common_update(new["metadata"], old["metadata"], resource.namespaced, problems)
    rules = _rules_of(resource)
    check = rules.status if subresource == "status" else rules.subresources.get(subresource, rules.update)
    check(new, old, problems)
    return problems


def validate_scale(scale: Mapping[str, Any]) -> list[FieldError]:
    """Return what is wrong with a Scale (Kubernetes: pkg/apis/autoscaling/validation, ValidateScale)."""
    problems = Problems()
    check_metadata(scale["metadata"], subdomain_name, True, problems)
    problems.not_negative("spec.replicas", scale.get("spec", {}).get("replicas", 0))
    return problems
