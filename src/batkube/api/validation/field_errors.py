"""Field errors: validation errors of one field of an object, with kube-apiserver's messages.

Validation returns a list of them; the server answers with one Status with reason `Invalid` and a cause for each error.

Kubernetes: apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from batkube.text.go_format import go_quote as go_quote


class FieldError(msgspec.Struct, frozen=True):
    """An error in one field; `reason` is that of `details.causes[]`."""

    reason: str
    field: str
    message: str


class Verbatim(str):
    """A value that is already formatted as in Go: a struct of internal types, with its fields in Go's order."""


#: The characters that Go's encoding/json escapes in strings beyond those that JSON requires.
GO_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def go_json(value: object) -> str:
    """Encode a value as Go's encoding/json does: maps sorted, no white space, HTML characters escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).translate(GO_ESCAPES)


def _value_text(value: object) -> str:
    """Format a value for an error message as Go does: strings quoted, everything else as JSON."""
    if isinstance(value, Verbatim):
        return value
    return go_quote(value) if isinstance(value, str) else go_json(value)


def required(field: str, detail: str = "") -> FieldError:
    """Return the error of a required field that is not set."""
    return FieldError("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: object, detail: str) -> FieldError:
    """Return the error of a value that is malformed or out of range."""
    message = f"Invalid value: {_value_text(value)}"
    return FieldError("FieldValueInvalid", field, f"{message}: {detail}" if detail else message)


def type_invalid(field: str, value: object, detail: str) -> FieldError:
    """Return the error of a value whose type differs from the custom resource's schema."""
    return FieldError("FieldValueTypeInvalid", field, f"Invalid value: {_value_text(value)}: {detail}")


def not_supported(field: str, value: object, supported: Iterable[str]) -> FieldError:
    """Return the error of an unsupported value; the supported ones are sorted, as in most checks of kube-apiserver."""
    return not_supported_in_order(field, value, sorted(supported))


def not_supported_in_order(field: str, value: object, supported: Iterable[str]) -> FieldError:
    """Return the error of an unsupported value; the supported ones are listed in the given order."""
    allowed = ", ".join(go_quote(word) for word in supported)
    return FieldError(
        "FieldValueNotSupported", field, f"Unsupported value: {_value_text(value)}: supported values: {allowed}"
    )


def duplicate(field: str, value: object) -> FieldError:
    """Return the error of a value that occurs twice in a list of unique values."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {_value_text(value)}")


def not_found(field: str, value: object) -> FieldError:
    """Return the error of a reference to a name that does not exist."""
    return FieldError("FieldValueNotFound", field, f"Not found: {_value_text(value)}")


def forbidden(field: str, detail: str) -> FieldError:
    """Return the error of a field that must not be set, or must not change."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def too_long(field: str, limit: int) -> FieldError:
    """Return the error of a string with too many bytes."""
    unit = "byte" if limit == 1 else "bytes"
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} {unit}")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Return the error of a list with too many items."""
    unit = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooMany", field, f"Too many: {count}: must have at most {limit} {unit}")
