"""Validation of node selectors, of pods, volumes and devices.

Kubernetes: pkg/apis/core/validation (ValidateNodeSelector).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.validation.metadata import check_label_name
from batkube.api.validation.names import label_value, subdomain_name
from batkube.api.validation.problems import Problems

_NOT_AN_OPERATOR = "not a valid selector operator"


def check_node_selector(selector: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check a node selector, whose terms are alternatives."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        problems.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", problems)


def check_node_term(term: Mapping[str, Any], path: str, problems: Problems, *, any_value: bool = False) -> None:
    """Check a term; with `any_value`, the values need not be label values (as in preferences)."""
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        _check_node_requirement(requirement, f"{path}.matchExpressions[{index}]", problems, any_value)
    for index, requirement in enumerate(term.get("matchFields", ())):
        _check_field_requirement(requirement, f"{path}.matchFields[{index}]", problems)


def _check_node_requirement(requirement: Mapping[str, Any], path: str, problems: Problems, any_value: bool) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            problems.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.forbidden(f"{path}.values", detail)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            problems.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        problems.invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR)
    check_label_name(requirement.get("key", ""), f"{path}.key", problems)
    if not any_value:
        for index, value in enumerate(values):
            problems.all_invalid(f"{path}.values[{index}]", value, label_value(value))


def _check_field_requirement(requirement: Mapping[str, Any], path: str, problems: Problems) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator not in ("In", "NotIn"):
        problems.invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        problems.required(f"{path}.values", detail)
    if (key := requirement.get("key", "")) != "metadata.name":
        problems.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        problems.all_invalid(f"{path}.values[{index}]", value, subdomain_name(value, False))
