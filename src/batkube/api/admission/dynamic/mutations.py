"""Apply the results of mutating policies' expressions to an object: apply configurations and JSON patches.

Kubernetes: apiserver/pkg/admission/plugin/policy/mutating/patch (smd.go, apply_json_patch.go) and pkg/cel/mutation.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from batkube.api.cel.functions.times import format_duration, format_timestamp
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.values import CelDuration, CelMessage, Timestamp
from batkube.api.managed_fields.typed_merge import merge
from batkube.api.managed_fields.typed_validation import validate
from batkube.api.managed_fields.typed_values import DEDUCED_SCHEMA, SchemaMismatch
from batkube.api.patches import json_patches
from batkube.api.patches.json_patches import PatchError, TestFailed
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema, Shape
from batkube.cluster.store import KubeObject

#: Protobuf's JSON, through which patches are converted, writes larger integers as strings (cel-go: common/types/int.go,
#: isJSONSafe).
_INTEGER_MAX = 2**53 - 1


class MutationFailed(Exception):
    """A mutation cannot be applied; the message is kube-apiserver's."""


def apply_configuration(config: CelMessage, value: KubeObject, resource: Resource) -> KubeObject:
    """Return `value` merged with an `Object{…}` as server-side apply does; raises MutationFailed."""
    _check_type_names(config)
    applied = {**_to_json(config), "apiVersion": resource.api_version, "kind": resource.kind}
    try:
        validate(applied, resource.schema)
    except SchemaMismatch as problem:
        text = f"failed to convert patch object to typed object: {problem}"
        raise MutationFailed(f"error applying patch: {text}") from problem
    atomic = list(_atomic_paths(applied, resource.schema, ""))
    if atomic:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationFailed(f"error applying patch: invalid ApplyConfiguration: {text}")
    result: KubeObject = merge(value, applied, resource.schema)
    return result


def apply_json_patch(operations: list[CelMessage], value: KubeObject) -> KubeObject:
    """Return `value` after a JSON patch, or unchanged if a `test` operation fails; raises MutationFailed."""
    try:
        result = json_patches.apply_json_patch(
            value, [_json_patch_operation(each) for each in operations], checks=False
        )
    except TestFailed:
        return value
    except PatchError as problem:
        raise MutationFailed(f"JSON Patch: {problem}") from problem
    if not isinstance(result, dict):
        raise MutationFailed("JSON Patch: the patched document is not an object")
    return result


def _json_patch_operation(message: CelMessage) -> dict[str, Any]:
    operation = {"op": message.get("op", ""), "path": message.get("path", "")}
    if message.get("from"):
        operation["from"] = message["from"]
    if "value" in message:
        if isinstance(message["value"], CelMessage):
            _check_type_names(message["value"])
        operation["value"] = _to_json(message["value"])
    return operation


def _check_type_names(message: CelMessage) -> None:
    """Raise MutationFailed if a part's type is not named after its field: `spec` must contain an `Object.spec`."""
    mismatches = [
        f'unexpected type name "{name}", expected "{expected}", which matches field name path from root Object type'
        for name, expected in _mismatched_type_names(message, message.name)
    ]
    if mismatches:
        raise MutationFailed("type mismatch: " + "\n".join(mismatches))


def _mismatched_type_names(value: Value, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, CelMessage):
        if value.name != path:
            yield value.name, path
        for field, part in value.items():
            yield from _mismatched_type_names(part, f"{path}.{field}")
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _mismatched_type_names(part, path)


def _to_json(value: Value) -> Any:  # noqa: ANN401 - any JSON
    """Return a CEL value as JSON."""
    if isinstance(value, dict):
        return {_map_key(key): _to_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_to_json(part) for part in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, CelDuration):
        return format_duration(value)
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= _INTEGER_MAX else str(value)
    raise MutationFailed(f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {value}")


def _map_key(key: Value) -> str:
    if not isinstance(key, str):
        raise MutationFailed(f"map key {key} is not a string")
    return key


def _atomic_paths(value: object, schema: Schema, path: str) -> Iterator[str]:
    """Yield the paths of atomic lists, maps and structs that a configuration sets."""
    if isinstance(value, dict) and schema.shape in (Shape.STRUCT, Shape.MAP):
        if schema.atomic:
            yield path
        for name, part in value.items():
            field = schema.fields.get(name)
            if field is not None:
                yield from _atomic_paths(part, field.schema, f"{path}.{name}")
    elif isinstance(value, list) and schema.shape is Shape.LIST:
        if schema.list_type == "atomic":
            yield path
        for number, part in enumerate(value):
            yield from _atomic_paths(part, schema.items or DEDUCED_SCHEMA, f"{path}[{number}]")
