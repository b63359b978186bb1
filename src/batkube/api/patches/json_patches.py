"""JSON Patch (RFC 6902), with the deviations of the library that Kubernetes uses.

Patching returns a new object that shares its unchanged parts with the old one, which is never modified. Where the
library (github.com/evanphx/json-patch, v4) deviates from the RFCs, so does this module: an index may be negative or
have leading zeros, `replace` may create a field, and `copy` of a missing field yields null.

If a client's JSON Patch does not apply, kube-apiserver answers without the reason; for patches of webhooks and policies
it reports the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import msgspec

from batkube.api.decoding.json_type_names import go_json_type
from batkube.kernel.numbers import parse_int
from batkube.text.go_format import go_quote

Json = Any
"""A JSON document: dict, list, str, int, float, bool or None."""

#: The maximum number of operations in a JSON Patch (Kubernetes: apiserver, endpoints/handlers/patch.go).
OPERATIONS_LIMIT = 10_000
#: The maximum number of bytes that the `copy` operations of a patch may add (JSONPatchMaxCopyBytes).
COPIED_BYTES_LIMIT = 3 * 1024 * 1024


_MISSING_VALUE = "missing value"


class PatchError(Exception):
    """The patch failed; `code` is the HTTP status of kube-apiserver's answer.

    400: the patch is malformed, and the message says how. 413: it has too many operations. 422: it does not apply, and
    the message is not sent. 500: an internal error with the message, for cases that kube-apiserver does not handle.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class TestFailed(PatchError):
    """A `test` operation found another value."""

    __test__ = False


class _PathNotFound(Exception):
    """The parent of a path does not exist."""


def _reject(problem: str) -> NoReturn:
    raise PatchError(422, problem)


# JSON Patch


def apply_json_patch(value: Json, patch: Json, checks: bool = True) -> Json:
    """Apply all operations of the patch to `value`, in order; raises PatchError if one fails.

    `checks`: fieldValidation is enabled, so that kube-apiserver decodes the patch twice; the first, strict decoding has
    more detailed errors.
    """
    operations = _checked_operations(patch) if checks else parse_operations(patch)
    if len(operations) > OPERATIONS_LIMIT:
        problem = f"The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {len(operations)}"
        raise PatchError(413, problem)
    document = _Document(value)
    for operation in operations:
        kind = operation.get("op")
        apply = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply is None:
            _reject(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        apply(document, operation)
    return document.value


def unknown_fields(patch: Json) -> list[str]:
    """Return the unknown fields in the operations of a JSON Patch, as strict decoding reports them."""
    return [
        f'json patch unknown field "[{number}].{name}"'
        for number, operation in enumerate(_checked_operations(patch))
        for name in operation
        if name not in ("op", "path", "from", "value")
    ]


def _checked_operations(patch: Json) -> list[dict[str, Json]]:
    """Return the operations of a patch after checking their form; null is an empty patch."""
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _type_error(patch, "value of type []handlers.jsonPatchOp")
    for operation in patch:
        if operation is not None and not isinstance(operation, dict):
            raise _type_error(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            text = None if operation is None else operation.get(name)
            if text is not None and not isinstance(text, str):
                raise _type_error(text, f"struct field jsonPatchOp.{name} of type string")
    return [operation or {} for operation in patch]


def parse_operations(patch: Json) -> list[dict[str, Json]]:
    """Parse the operations of a patch as the library does; raises PatchError."""
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise PatchError(400, f"json: cannot unmarshal {go_json_type(patch)} into Go value of type jsonpatch.Patch")
    for item in patch:
        if item is not None and not isinstance(item, dict):
            raise PatchError(
                400, f"json: cannot unmarshal {go_json_type(item)} into Go value of type jsonpatch.Operation"
            )
    return [operation or {} for operation in patch]


def not_an_object_message(patch: Json) -> str:
    """Return Go's error message for a patch that is not an object."""
    return f"json: cannot unmarshal {go_json_type(patch)} into Go value of type map[string]interface {{}}"


def _type_error(value: Json, target: str) -> PatchError:
    return PatchError(400, f"error decoding patch: json: cannot unmarshal {go_json_type(value)} into Go {target}")


def _pointer(operation: dict[str, Json], name: str) -> str:
    """Return a JSON pointer of an operation."""
    text = operation.get(name)
    if not isinstance(text, str):
        _reject(f"{operation.get('op')} operation failed to decode {name}: {_MISSING_VALUE}")
    return text


def _pointer_parts(path: str) -> list[str]:
    """Split a JSON pointer; the text before the first slash is ignored, as in the library."""
    if "/" not in path:
        raise _PathNotFound
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _index(text: str, length: int) -> int:
    """Parse an index into a list of `length`; negative indices count from the end."""
    try:
        index = parse_int(text)
    except ValueError:
        _reject(f"strconv.Atoi: parsing {go_quote(text)}: invalid syntax")
    if index is None:
        _reject(f"strconv.Atoi: parsing {go_quote(text)}: value out of range")
    if not -length <= index < length:
        _reject(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index


def _child(value: Json, part: str) -> Json:
    """Return the member `part` of `value`, None if a dict does not have it."""
    return value.get(part) if isinstance(value, dict) else value[_index(part, len(value))]


def deep_copy(value: Json) -> Json:
    """Return a deep copy in which no container occurs twice."""
    if isinstance(value, dict):
        return {key: deep_copy(item) for key, item in value.items()}
    return [deep_copy(item) for item in value] if isinstance(value, list) else value


class _Document:
    """The object while it is patched.

    A container is copied before the first operation that modifies it; from then on it is owned by this document, and
    modified in place. The cost of a patch is therefore proportional to its size plus that of the touched containers,
    not to their product.
    """

    def __init__(self, value: Json) -> None:
        self.value = value
        #: The ids of owned containers. An owned container is never inside one that is not owned.
        self._copies: dict[int, Json] = {}
        self._copied_bytes = 0

    def locate(self, path: str) -> tuple[Json, str]:
        """Return the container and key that a pointer refers to, copied for modification; raises _PathNotFound."""
        parts = _pointer_parts(path)
        container = self.value = self._copy_on_write(self.value)
        for part in parts[:-1]:
            try:
                child = _child(container, part)
            except PatchError:
                raise _PathNotFound from None
            child = self._copy_on_write(child)
            container[part if isinstance(container, dict) else _index(part, len(container))] = child
            container = child
        return container, parts[-1]

    def _copy_on_write(self, value: Json) -> Json:
        if not isinstance(value, dict | list):
            raise _PathNotFound
        if id(value) in self._copies:
            return value
        copied = value.copy()
        self._copies[id(copied)] = copied
        return copied

    def copy_of(self, value: Json) -> Json:
        """Return a copy of a part of the object, independent of later changes to the original."""
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > COPIED_BYTES_LIMIT:
            problem = f"Unable to complete the copy, the accumulated size increase of copy is {self._copied_bytes}"
            _reject(f"{problem}, exceeding the limit {COPIED_BYTES_LIMIT}")
        return self._detached(value)

    def _detached(self, value: Json) -> Json:
        if id(value) not in self._copies:
            return value
        if isinstance(value, dict):
            return {key: self._detached(item) for key, item in value.items()}
        return [self._detached(item) for item in value]


def _insert(container: Json, part: str, new: Json) -> None:
    """Add `new` at a key or list index."""
    if isinstance(container, dict):
        container[part] = new
    elif part == "-":
        container.append(new)
    else:
        container.insert(_new_index(part, len(container) + 1), new)


def _new_index(part: str, length: int) -> int:
    try:
        return _index(part, length)
    except PatchError as problem:
        is_number = "strconv" not in problem.message
        raise (
            problem if is_number else _with_context(f"value was not a proper array index: '{part}'", problem)
        ) from None


def _delete(container: Json, part: str) -> None:
    """Remove a key or list item."""
    if isinstance(container, list):
        del container[_index(part, len(container))]
    elif part in container:
        del container[part]
    else:
        _reject(f"Unable to remove nonexistent key: {part}: {_MISSING_VALUE}")


def _with_context(operation: str, problem: PatchError) -> PatchError:
    return PatchError(problem.code, f"{operation}: {problem.message}")


@contextlib.contextmanager
def _error_context(operation: str) -> Iterator[None]:
    """Add the failed operation to the message of an error."""
    try:
        yield
    except PatchError as problem:
        raise _with_context(operation, problem) from None


def _locate(document: _Document, path: str, problem: str) -> tuple[Json, str]:
    try:
        return document.locate(path)
    except _PathNotFound:
        _reject(f"{problem}: {_MISSING_VALUE}")


def _add(document: _Document, operation: dict[str, Json]) -> None:
    path = _pointer(operation, "path")
    place = _locate(document, path, f'add operation does not apply: doc is missing path: "{path}"')
    with _error_context(f"error in add for path: '{path}'"):
        _insert(*place, operation.get("value"))


def _remove(document: _Document, operation: dict[str, Json]) -> None:
    path = _pointer(operation, "path")
    place = _locate(document, path, f'remove operation does not apply: doc is missing path: "{path}"')
    with _error_context(f"error in remove for path: '{path}'"):
        _delete(*place)


def _replace(document: _Document, operation: dict[str, Json]) -> None:
    path, new = _pointer(operation, "path"), operation.get("value")
    if path == "":
        document.value = new if isinstance(new, dict | list) else document.value
        return
    container, part = _locate(document, path, f"replace operation does not apply: doc is missing path: {path}")
    try:
        container[part if isinstance(container, dict) else _index(part, len(container))] = new
    except PatchError:
        _reject(f"replace operation does not apply: doc is missing key: {path}: {_MISSING_VALUE}")


def _move(document: _Document, operation: dict[str, Json]) -> None:
    source = _pointer(operation, "from")
    container, part = _locate(document, source, f"move operation does not apply: doc is missing from path: {source}")
    with _error_context(f"error in move for path: '{part}'"):
        moved = _child(container, part)
        _delete(container, part)
    path = _pointer(operation, "path")
    place = _locate(document, path, f"move operation does not apply: doc is missing destination path: {path}")
    with _error_context(f"error in move for path: '{path}'"):
        _insert(*place, moved)


def _copy(document: _Document, operation: dict[str, Json]) -> None:
    source = _pointer(operation, "from")
    origin = _locate(document, source, f"copy operation does not apply: doc is missing from path: {source}")
    with _error_context(f"error in copy for from: '{source}'"):
        value = _child(*origin)
    path = _pointer(operation, "path")
    place = _locate(document, path, f"copy operation does not apply: doc is missing destination path: {path}")
    copied = document.copy_of(value)
    with _error_context("error while adding value during copy"):
        _insert(*place, copied)


def _test(document: _Document, operation: dict[str, Json]) -> None:
    path = _pointer(operation, "path")
    actual = document.value
    if path:
        place = _locate(document, path, f"test operation does not apply: is missing path: {path}")
        with _error_context(f"error in test for path: '{path}'"):
            actual = _child(*place)
    if not json_equal(actual, operation.get("value")):
        raise TestFailed(422, f"testing value {path} failed: test failed")


_OPERATIONS: dict[str, Callable[[_Document, dict[str, Json]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def json_equal(one: Json, other: Json) -> bool:
    """Return whether two documents are equal as JSON texts: `1`, `1.0` and `true` all differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            key in other and json_equal(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(json_equal, one, other))
    return bool(one == other)
