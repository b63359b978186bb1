"""JSON Patch (RFC 6902) and JSON merge patch (RFC 7386), with the habits of the library that Kubernetes uses.

Both take an object and return a new one; what a patch does not touch is shared with the old one, which is never
edited. Where the library (github.com/evanphx/json-patch, v4) departs from the RFCs, so do we: an index may be negative
or have leading zeros, `replace` may create a field, `copy` of a missing field gives null, and a merge patch drops nulls
inside the lists it brings.

A JSON Patch that does not apply is answered without the reason, so none is kept here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from batkube.kernel.numbers import int_of

Json = Any
"""What a JSON document holds: dict, list, str, int, float, bool or None."""

#: How many operations one JSON Patch may have (Kubernetes: apiserver, endpoints/handlers/patch.go).
OPERATIONS_LIMIT = 10_000
#: By how many bytes the `copy` operations of one patch may make an object grow (JSONPatchMaxCopyBytes).
COPIED_BYTES_LIMIT = 3 * 1024 * 1024


class PatchError(Exception):
    """The patch cannot be used; `code` says whose fault the real server thinks it is.

    400: the patch is malformed, and the message says how. 413: it has too many operations. 422: it does not apply, and
    the message is not sent. 500: the real server knows no better answer than an internal error with the message.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _rejected() -> NoReturn:
    raise PatchError(422, "the patch does not apply")


# JSON Patch


def json_patch(value: Json, patch: Json, checks: bool = True) -> Json:
    """Return `value` after all operations of the patch, in order; raises PatchError if one of them does not apply.

    `checks`: fields are validated, and so the patch is read twice by the real server; the first time it says more.
    """
    operations = _operations(patch) if checks else _unchecked_operations(patch)
    if len(operations) > OPERATIONS_LIMIT:
        problem = f"The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {len(operations)}"
        raise PatchError(413, problem)
    document = _Document(value)
    for operation in operations:
        kind = operation.get("op")
        apply = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply is None:
            _rejected()
        apply(document, operation)
    return document.value


def unknown_in_json_patch(patch: Json) -> list[str]:
    """Return what is in the operations of a JSON Patch and does not belong there, as strict decoding reports it."""
    return [
        f'json patch unknown field "[{number}].{name}"'
        for number, operation in enumerate(_operations(patch))
        for name in operation
        if name not in ("op", "path", "from", "value")
    ]


def _operations(patch: Json) -> list[dict[str, Json]]:
    """Return the operations of a patch, once they are sure to look like some; null is none at all."""
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _undecodable(patch, "value of type []handlers.jsonPatchOp")
    for operation in patch:
        if operation is not None and not isinstance(operation, dict):
            raise _undecodable(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            text = None if operation is None else operation.get(name)
            if text is not None and not isinstance(text, str):
                raise _undecodable(text, f"struct field jsonPatchOp.{name} of type string")
    return [operation or {} for operation in patch]


def _unchecked_operations(patch: Json) -> list[dict[str, Json]]:
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise PatchError(400, f"json: cannot unmarshal {json_type(patch)} into Go value of type jsonpatch.Patch")
    for item in patch:
        if item is not None and not isinstance(item, dict):
            raise PatchError(400, f"json: cannot unmarshal {json_type(item)} into Go value of type jsonpatch.Operation")
    return [operation or {} for operation in patch]


_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "bool"}


def not_an_object(patch: Json) -> str:
    """Say, as Go does, that a patch should have been an object."""
    return f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"


def _undecodable(value: Json, target: str) -> PatchError:
    return PatchError(400, f"error decoding patch: json: cannot unmarshal {json_type(value)} into Go {target}")


def json_type(value: Json) -> str:
    """Return what Go's JSON calls the type of a value."""
    return _JSON_TYPES.get(type(value), "number")


def _pointer(operation: dict[str, Json], name: str) -> list[str]:
    """Return the parts of a JSON pointer; what stands before the first slash is ignored, as the library does."""
    text = operation.get(name)
    if not isinstance(text, str) or "/" not in text:
        _rejected()
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(text: str, length: int) -> int:
    """Return the index that `text` means in a list of `length`; negative ones count from its end."""
    try:
        index = int_of(text)
    except ValueError:
        _rejected()
    if index is None or not -length <= index < length:
        _rejected()
    return index + length if index < 0 else index


def _child(value: Json, part: str) -> Json:
    """Return what `part` names in `value`, None if a dict does not have it."""
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list):
        return value[_index(part, len(value))]
    return _rejected()


class _Document:
    """The object while it is patched.

    A container is copied when an operation first edits it; from then on it is our own, and edited in place. So the
    work of a patch grows with what it says and what it touches, not with their product.
    """

    def __init__(self, value: Json) -> None:
        self.value = value
        #: Our own containers, by identity. None of them is inside one that is not our own.
        self._own: dict[int, Json] = {}
        self._copied_bytes = 0

    def at(self, parts: list[str]) -> Json:
        """Return what a pointer points to."""
        value = self.value
        for part in parts:
            value = _child(value, part)
        return value

    def container(self, parts: list[str]) -> Json:
        """Return the container that the last part of a pointer names something in, ready to be edited."""
        container = self.value = self._owned(self.value)
        for part in parts[:-1]:
            child = _child(container, part)
            if child is None:
                _rejected()
            child = self._owned(child)
            container[part if isinstance(container, dict) else _index(part, len(container))] = child
            container = child
        return container

    def _owned(self, value: Json) -> Json:
        if not isinstance(value, dict | list):
            _rejected()
        if id(value) in self._own:
            return value
        copied = value.copy()
        self._own[id(copied)] = copied
        return copied

    def add(self, parts: list[str], new: Json) -> None:
        """Put `new` at a place of its own."""
        container, part = self.container(parts), parts[-1]
        if isinstance(container, dict):
            container[part] = new
        else:
            container.insert(len(container) if part == "-" else _index(part, len(container) + 1), new)

    def remove(self, parts: list[str]) -> None:
        """Take out what is at a place."""
        container, part = self.container(parts), parts[-1]
        if isinstance(container, list):
            del container[_index(part, len(container))]
        elif part in container:
            del container[part]
        else:
            _rejected()

    def copy_of(self, parts: list[str]) -> Json:
        """Return a copy of what is at a place, which no edit of the original will change."""
        value = self.at(parts)
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > COPIED_BYTES_LIMIT:
            _rejected()
        return self._detached(value)

    def _detached(self, value: Json) -> Json:
        if id(value) not in self._own:
            return value
        if isinstance(value, dict):
            return {key: self._detached(item) for key, item in value.items()}
        return [self._detached(item) for item in value]


def _add(document: _Document, operation: dict[str, Json]) -> None:
    document.add(_pointer(operation, "path"), operation.get("value"))


def _remove(document: _Document, operation: dict[str, Json]) -> None:
    document.remove(_pointer(operation, "path"))


def _replace(document: _Document, operation: dict[str, Json]) -> None:
    new = operation.get("value")
    if operation.get("path") == "":
        document.value = new if isinstance(new, dict | list) else document.value
        return
    parts = _pointer(operation, "path")
    container = document.container(parts)
    container[parts[-1] if isinstance(container, dict) else _index(parts[-1], len(container))] = new


def _move(document: _Document, operation: dict[str, Json]) -> None:
    source = _pointer(operation, "from")
    moved = document.at(source)
    document.remove(source)
    document.add(_pointer(operation, "path"), moved)


def _copy(document: _Document, operation: dict[str, Json]) -> None:
    document.add(_pointer(operation, "path"), document.copy_of(_pointer(operation, "from")))


def _test(document: _Document, operation: dict[str, Json]) -> None:
    actual = document.value if operation.get("path") == "" else document.at(_pointer(operation, "path"))
    if not same(actual, operation.get("value")):
        _rejected()


_OPERATIONS: dict[str, Callable[[_Document, dict[str, Json]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def same(one: Json, other: Json) -> bool:
    """Return whether two documents are equal as JSON texts are: `1`, `1.0` and `true` all differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


# Merge patch


def merge_patch(value: dict[str, Json], patch: Json, checks: bool = True) -> Json:
    """Return `value` with what `patch` has in place of what it had; a null removes a field. Raises PatchError.

    `checks`: fields are validated, and so the real server makes sure that the patch is an object. Else a list takes
    the place of the object, for decoding to refuse.
    """
    if isinstance(patch, dict):
        return _merged(value, patch)
    if patch is not None and checks:
        raise PatchError(400, f"error decoding patch: {not_an_object(patch)}")
    if isinstance(patch, list):
        return _without_nulls(patch)
    raise PatchError(400, "Invalid JSON Patch")


def _merged(value: dict[str, Json], patch: dict[str, Json]) -> dict[str, Json]:
    merged = dict(value)
    for key, new in patch.items():
        if new is None:
            merged.pop(key, None)
            continue
        old = merged.get(key)
        if isinstance(old, dict):
            merged[key] = _merged(old, new) if isinstance(new, dict) else new
        else:
            merged[key] = _without_nulls(new)
    return merged


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
