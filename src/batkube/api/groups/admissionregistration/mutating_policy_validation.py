"""Mutating admission policies and their bindings (Kubernetes: pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.cel.checking import Scope
from batkube.api.groups.admissionregistration.policy_validation import (
    check_binding,
    check_chosen,
    check_match_resources,
    check_param_kind,
    check_variables,
)
from batkube.api.groups.admissionregistration.scope import with_parameters
from batkube.api.groups.admissionregistration.validation import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    check_match_conditions,
)
from batkube.api.groups.expressions import check_expression
from batkube.api.validation.metadata import check_metadata
from batkube.api.validation.names import subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, Rules

#: There is nothing to change in what is deleted.
_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
#: The ways to change an object: the field of each, and what its expression must be.
_PATCHES = {"ApplyConfiguration": ("applyConfiguration", "Object"), "JSONPatch": ("jsonPatch", "list(JSONPatch)")}


def _check_spec(spec: Mapping[str, Any], problems: Problems, *, conditions: bool = True) -> None:
    check_chosen(spec.get("failurePolicy"), FAILURE_POLICIES, "spec.failurePolicy", problems)
    known = with_parameters(spec.get("paramKind") is not None)
    if (kind := spec.get("paramKind")) is not None:
        check_param_kind(kind, "spec.paramKind", problems)
    if (match := spec.get("matchConstraints")) is None:
        problems.required("spec.matchConstraints")
    else:
        check_match_resources(match, "spec.matchConstraints", problems)
        if not match.get("resourceRules"):
            problems.required("spec.matchConstraints.resourceRules")
        _check_operations(match, "spec.matchConstraints", problems)
    if conditions:
        check_match_conditions(spec.get("matchConditions") or (), known, "spec.matchConditions", problems)
    known = check_variables(spec, known, problems)
    if not spec.get("mutations"):
        problems.required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(spec.get("mutations") or ()):
        _check_mutation(mutation, known, f"spec.mutations[{index}]", problems)
    check_chosen(spec.get("reinvocationPolicy") or None, REINVOCATION_POLICIES, "spec.reinvocationPolicy", problems)


def _check_operations(match: Mapping[str, Any], path: str, problems: Problems) -> None:
    for rule in match.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _OPERATIONS:
                problems.not_supported(f"{path}.resourceRules.operations", operation, _OPERATIONS)


def _check_mutation(mutation: Mapping[str, Any], known: Scope, path: str, problems: Problems) -> None:
    kind = mutation.get("patchType") or None
    check_chosen(kind, sorted(_PATCHES), f"{path}.patchType", problems)
    if kind not in _PATCHES:
        return
    field, result = _PATCHES[kind]
    patch = mutation.get(field)
    if patch is None:
        problems.required(f"{path}.{field}", f"must be specified when patchType is {kind}")
    elif not (text := patch.get("expression", "").strip()):
        problems.required(f"{path}.{field}.expression")
    else:
        check_expression(text, known, f"{path}.{field}.expression", problems, result, messages=True)
    for other, _ in _PATCHES.values():
        if other != field and mutation.get(other) is not None:
            detail = f"must not be specified when patchType is {kind}"
            problems.invalid(f"{path}.{other}", f"{{{other}}}", detail)


def _policy(value: Object, problems: Problems) -> None:
    check_metadata(value["metadata"], subdomain_name, False, problems)
    _check_spec(value.get("spec", {}), problems)


def _update_policy(new: Object, old: Object, problems: Problems) -> None:
    check_metadata(new["metadata"], subdomain_name, False, problems)
    fields = ("paramKind", "matchConditions")
    same = all(new.get("spec", {}).get(field) == old.get("spec", {}).get(field) for field in fields)
    _check_spec(new.get("spec", {}), problems, conditions=not same)


def _binding(value: Object, problems: Problems) -> None:
    check_binding(value, problems)
    _check_operations(value.get("spec", {}).get("matchResources") or {}, "spec.matchResources", problems)


def _update_binding(new: Object, old: Object, problems: Problems) -> None:
    _binding(new, problems)


MUTATING_ADMISSION_POLICY_RULES = Rules(_policy, _update_policy)
MUTATING_ADMISSION_POLICY_BINDING_RULES = Rules(_binding, _update_binding)
