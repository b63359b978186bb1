"""Validation of a custom object's fields behind the subresource `scale`: integer replicas, a string selector.

Kubernetes: apiextensions-apiserver/pkg/registry/customresource/validator.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.custom.schemas.structural import Json
from batkube.api.groups.autoscaling.scales import ScalePaths
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError
from batkube.cluster.store import KubeObject
from batkube.text.go_format import go_value

_INT32_MAX = 2**31 - 1
_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def read_scale_paths(scale: dict[str, Any]) -> ScalePaths:
    """Return the paths of replicas and selector from the definition's `subresources.scale`."""
    selector = scale.get("labelSelectorPath") or ""
    return ScalePaths(
        _path_elements(scale.get("specReplicasPath", "")),
        _path_elements(scale.get("statusReplicasPath", "")),
        _path_elements(selector) if selector else (),
    )


def _path_elements(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def validate_spec_replicas(value: KubeObject, paths: ScalePaths) -> list[FieldError]:
    """Validate the desired replicas."""
    return _validate_replicas(value, paths.spec_replicas)


def validate_scale_status(value: KubeObject, paths: ScalePaths) -> list[FieldError]:
    """Validate the reported replicas, and the selector."""
    errors = _validate_replicas(value, paths.status_replicas)
    if paths.selector:
        problem = _type_problem(value, paths.selector, str, "string")
        if problem:
            errors.append(field_errors.invalid("." + ".".join(paths.selector), "", problem))
    return errors


def _validate_replicas(value: KubeObject, path: tuple[str, ...]) -> list[FieldError]:
    field = "." + ".".join(path)
    problem = _type_problem(value, path, int, "int64")
    if problem:
        return [field_errors.invalid(field, 0, problem)]
    replicas = _value_at(value, path) or 0
    if replicas < 0:
        return [field_errors.invalid(field, replicas, "should be a non-negative integer")]
    if replicas > _INT32_MAX:
        return [field_errors.invalid(field, replicas, f"should be less than or equal to {_INT32_MAX}")]
    return []


def _value_at(value: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _type_problem(value: Json, path: tuple[str, ...], expected: type, name: str) -> str:
    """Return the error for a value of the wrong type at a path, worded as in apimachinery; "" if the type is right."""
    for number, step in enumerate(path):
        if value is None:
            return ""
        if not isinstance(value, dict):
            return _type_mismatch(path[: number + 1], value, "map[string]interface{}")
        if step not in value:
            return ""
        value = value[step]
    if isinstance(value, expected) and not isinstance(value, bool):
        return ""
    return _type_mismatch(path, value, name)


def _type_mismatch(path: tuple[str, ...], value: Json, expected: str) -> str:
    kind = _GO_TYPES.get(type(value), "<nil>")
    return f".{'.'.join(path)} accessor error: {go_value(value)} is of the type {kind}, expected {expected}"
