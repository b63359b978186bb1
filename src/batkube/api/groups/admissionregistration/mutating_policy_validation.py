"""Validation of MutatingAdmissionPolicies and bindings (Kubernetes: pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.cel.checker import Scope
from batkube.api.groups.admissionregistration.policy_validation import (
    check_binding,
    check_policy,
    check_required_choice,
)
from batkube.api.groups.admissionregistration.validation import REINVOCATION_POLICIES
from batkube.api.groups.kind_model.cel_expressions import check_expression
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules

#: A deletion has no object to mutate.
_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
#: The types of mutation: their field, and the required type of its expression.
_PATCHES = {"ApplyConfiguration": ("applyConfiguration", "Object"), "JSONPatch": ("jsonPatch", "list(JSONPatch)")}


def _validate_policy(new: Object, problems: Problems, old: Object | None = None) -> None:
    policy_scope, spec = check_policy(new, old, problems, _OPERATIONS), new.get("spec", {})
    if not spec.get("mutations"):
        problems.required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(spec.get("mutations") or ()):
        _check_mutation(mutation, policy_scope, f"spec.mutations[{index}]", problems)
    check_required_choice(
        spec.get("reinvocationPolicy") or None, REINVOCATION_POLICIES, "spec.reinvocationPolicy", problems
    )


def _check_mutation(mutation: Mapping[str, Any], scope: Scope, path: str, problems: Problems) -> None:
    kind = mutation.get("patchType") or None
    check_required_choice(kind, sorted(_PATCHES), f"{path}.patchType", problems)
    if kind not in _PATCHES:
        return
    field, result = _PATCHES[kind]
    patch = mutation.get(field)
    if patch is None:
        problems.required(f"{path}.{field}", f"must be specified when patchType is {kind}")
    elif not (text := patch.get("expression", "").strip()):
        problems.required(f"{path}.{field}.expression")
    else:
        check_expression(text, scope, f"{path}.{field}.expression", problems, result, messages=True)
    for other, _ in _PATCHES.values():
        if other != field and mutation.get(other) is not None:
            detail = f"must not be specified when patchType is {kind}"
            problems.invalid(f"{path}.{other}", f"{{{other}}}", detail)


def _validate_policy_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_policy(new, problems, old)


def _validate_binding(value: Object, problems: Problems) -> None:
    check_binding(value, problems, _OPERATIONS)


def _validate_binding_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_binding(new, problems)


MUTATING_ADMISSION_POLICY_RULES = ValidationRules(_validate_policy, _validate_policy_update)
MUTATING_ADMISSION_POLICY_BINDING_RULES = ValidationRules(_validate_binding, _validate_binding_update)
