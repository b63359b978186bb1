"""What the expressions of mutating policies make of an object: a configuration that is applied, or a JSON patch.

Kubernetes: apiserver/pkg/admission/plugin/policy/mutating/patch (smd.go, json_patch.go) and pkg/cel/mutation.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from batkube.api.cel.lexing import Value
from batkube.api.cel.time_functions import duration_text, timestamp_text
from batkube.api.cel.values import CelDuration, CelMessage, Timestamp
from batkube.api.managed_fields.typed_merge import merged
from batkube.api.managed_fields.typed_validation import check
from batkube.api.managed_fields.typed_values import DEDUCED, Unfit
from batkube.api.patches.json_patches import PatchError, TestFailed, json_patch
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema, Shape
from batkube.cluster.store import KubeObject

#: Larger integers are texts in protobuf's JSON, which patches go through (cel-go: common/types/int.go, isJSONSafe).
_INTEGER_MAX = 2**53 - 1


class NotMutated(Exception):
    """A mutation cannot be made; the message is that of the real server."""


def applied(config: CelMessage, value: KubeObject, resource: Resource) -> KubeObject:
    """Return `value` with what an `Object{…}` says, merged as server-side apply does. Raises NotMutated."""
    _check_names(config)
    wanted = {**_plain(config), "apiVersion": resource.api_version, "kind": resource.kind}
    try:
        check(wanted, resource.schema)
    except Unfit as problem:
        text = f"failed to convert patch object to typed object: {problem}"
        raise NotMutated(f"error applying patch: {text}") from problem
    atomic = list(_atomic_parts(wanted, resource.schema, ""))
    if atomic:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise NotMutated(f"error applying patch: invalid ApplyConfiguration: {text}")
    result: KubeObject = merged(value, wanted, resource.schema)
    return result


def patched(operations: list[CelMessage], value: KubeObject) -> KubeObject:
    """Return `value` after the operations of a JSON patch, or as it is if a test fails. Raises NotMutated."""
    try:
        result = json_patch(value, [_operation(one) for one in operations], checks=False)
    except TestFailed:
        return value
    except PatchError as problem:
        raise NotMutated(f"JSON Patch: {problem}") from problem
    if not isinstance(result, dict):
        raise NotMutated("JSON Patch: the patch left no object")
    return result


def _operation(message: CelMessage) -> dict[str, Any]:
    operation = {"op": message.get("op", ""), "path": message.get("path", "")}
    if message.get("from"):
        operation["from"] = message["from"]
    if "value" in message:
        if isinstance(message["value"], CelMessage):
            _check_names(message["value"])
        operation["value"] = _plain(message["value"])
    return operation


def _check_names(message: CelMessage) -> None:
    """Refuse a message whose parts are not called like the fields that they stand in: `Object.spec` in `spec`."""
    wrong = [
        f'unexpected type name "{name}", expected "{wanted}", which matches field name path from root Object type'
        for name, wanted in _wrong_names(message, message.name)
    ]
    if wrong:
        raise NotMutated("type mismatch: " + "\n".join(wrong))


def _wrong_names(value: Value, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, CelMessage):
        if value.name != path:
            yield value.name, path
        for field, part in value.items():
            yield from _wrong_names(part, f"{path}.{field}")
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _wrong_names(part, path)


def _plain(value: Value) -> Any:  # noqa: ANN401 - any JSON
    """Return a value of CEL as JSON has it."""
    if isinstance(value, dict):
        return {_key(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, CelDuration):
        return duration_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= _INTEGER_MAX else str(value)
    raise NotMutated(f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {value}")


def _key(key: Value) -> str:
    if not isinstance(key, str):
        raise NotMutated(f"map key {key} is not a string")
    return key


def _atomic_parts(value: object, schema: Schema, path: str) -> Iterator[str]:
    """Yield where a configuration sets a list, a map or a struct that is replaced as a whole."""
    if isinstance(value, dict) and schema.shape in (Shape.STRUCT, Shape.MAP):
        if schema.atomic:
            yield path
        for name, part in value.items():
            field = schema.fields.get(name)
            if field is not None:
                yield from _atomic_parts(part, field.schema, f"{path}.{name}")
    elif isinstance(value, list) and schema.shape is Shape.LIST:
        if schema.list_type == "atomic":
            yield path
        for number, part in enumerate(value):
            yield from _atomic_parts(part, schema.items or DEDUCED, f"{path}[{number}]")
