"""Field and label selectors in access reviews, such as "may the user list the pods of one node?".

RBAC ignores them, but they are validated, and the review's status reports those that cannot be parsed (Kubernetes:
pkg/apis/authorization/validation, pkg/registry/authorization/util).
"""

from __future__ import annotations

from batkube.api.requests.field_selectors import parse_field_requirements
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError
from batkube.cluster.selectors import SelectorError, parse_labels, selector_of
from batkube.cluster.store import KubeObject
from batkube.text.label_syntax import label_value, qualified_name

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


def validate_selectors(spec: KubeObject) -> list[FieldError]:
    """Return the problems with the selectors of a review's resource attributes."""
    attributes = spec.get("resourceAttributes") or {}
    return [
        problem
        for name in ("fieldSelector", "labelSelector")
        for problem in _validate_selector(attributes.get(name), name)
    ]


def _validate_selector(selector: KubeObject | None, name: str) -> list[FieldError]:
    if selector is None:
        return []
    path = f"spec.resourceAttributes.{name}"
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    problems = []
    if raw and requirements:
        problem = "may not specified at the same time as requirements"
        problems.append(field_errors.invalid(f"{path}.rawSelector", raw, problem))
    if not raw and not requirements:
        problem = f"when {path} is specified, requirements or rawSelector is required"
        problems.append(field_errors.required(f"{path}.requirements", problem))
    for index, requirement in enumerate(requirements):
        problems += _validate_requirement(requirement, f"{path}.requirements[{index}]", name == "labelSelector")
    return problems


def _validate_requirement(requirement: KubeObject, path: str, of_labels: bool) -> list[FieldError]:
    key, operator, values = requirement.get("key", ""), requirement.get("operator", ""), requirement.get("values") or []
    problems = []
    if not of_labels and not key:
        problems.append(field_errors.required(f"{path}.key", "must be specified"))
    if operator in _WITH_VALUES and not values:
        problem = "must be specified when `operator` is 'In' or 'NotIn'"
        problems.append(field_errors.required(f"{path}.values", problem))
    if operator in _WITHOUT_VALUES and values:
        problem = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        problems.append(field_errors.forbidden(f"{path}.values", problem))
    if of_labels:
        problems += [field_errors.invalid(f"{path}.key", key, problem) for problem in qualified_name(key)]
        for index, value in enumerate(values):
            at = f"{path}.values[{index}]"
            problems += [field_errors.invalid(at, value, problem) for problem in label_value(value)]
    return problems


def unparsable_selectors(spec: KubeObject) -> str:
    """Return a message about the selectors of a review that were ignored, wholly or partly, due to parse errors."""
    attributes = spec.get("resourceAttributes") or {}
    ignored = []
    for name, is_valid in (("fieldSelector", _is_field_requirement), ("labelSelector", _is_label_requirement)):
        selector = attributes.get(name) or {}
        requirements = selector.get("requirements") or []
        valid = [is_valid(requirement) for requirement in requirements]
        if not requirements and selector.get("rawSelector") and not _is_parsable(name, selector["rawSelector"]):
            ignored.append(f"spec.resourceAttributes.{name} ignored due to parse error")
        elif not all(valid):
            partly = "partially ignored" if any(valid) else "ignored"
            ignored.append(f"spec.resourceAttributes.{name} {partly} due to parse error")
    return "; ".join(ignored)


def _is_parsable(name: str, text: str) -> bool:
    try:
        parse_field_requirements(text) if name == "fieldSelector" else parse_labels(text)
    except SelectorError:
        return False
    return True


def _is_field_requirement(requirement: KubeObject) -> bool:
    """Return whether a field selector can express the requirement: it compares with exactly one value."""
    return requirement.get("operator") in _WITH_VALUES and len(requirement.get("values") or ()) == 1


def _is_label_requirement(requirement: KubeObject) -> bool:
    try:
        selector_of({"matchExpressions": [requirement]})
    except SelectorError:
        return False
    return True
