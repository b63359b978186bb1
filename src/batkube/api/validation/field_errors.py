"""What is wrong with one field of an object, in the words of the real server.

Validation returns a list of these; the server turns them into one Status with reason `Invalid` and a cause for each
(Kubernetes: apimachinery/pkg/util/validation/field/errors.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from batkube.kernel.text.go_format import go_quote as go_quote


class FieldError(msgspec.Struct, frozen=True):
    """One problem; `reason` is the word of `details.causes[].reason`."""

    reason: str
    field: str
    message: str


class Verbatim(str):
    """A value that is already written as Go would: a struct of the server's internal types, fields in Go's order."""


#: What Go's encoding/json escapes in strings, beyond what JSON asks for.
GO_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def go_json(value: object) -> str:
    """Write a value as Go's encoding/json does: maps sorted, no blanks, a few characters escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).translate(GO_ESCAPES)


def _value_text(value: object) -> str:
    """Write a value as Go does in these messages: strings quoted, everything else as JSON."""
    if isinstance(value, Verbatim):
        return value
    return go_quote(value) if isinstance(value, str) else go_json(value)


def required(field: str, detail: str = "") -> FieldError:
    """The field must be given."""
    return FieldError("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: object, detail: str) -> FieldError:
    """The value is malformed or out of range."""
    message = f"Invalid value: {_value_text(value)}"
    return FieldError("FieldValueInvalid", field, f"{message}: {detail}" if detail else message)


def type_invalid(field: str, value: object, detail: str) -> FieldError:
    """The value is of another type than the schema of a custom resource says."""
    return FieldError("FieldValueTypeInvalid", field, f"Invalid value: {_value_text(value)}: {detail}")


def not_supported(field: str, value: object, supported: Iterable[str]) -> FieldError:
    """The value is none of those allowed, which are listed sorted, as the real server mostly does."""
    return not_supported_in_order(field, value, sorted(supported))


def not_supported_in_order(field: str, value: object, supported: Iterable[str]) -> FieldError:
    """The value is none of those allowed, which are listed in the order given."""
    allowed = ", ".join(go_quote(word) for word in supported)
    return FieldError(
        "FieldValueNotSupported", field, f"Unsupported value: {_value_text(value)}: supported values: {allowed}"
    )


def duplicate(field: str, value: object) -> FieldError:
    """The value is there twice in a list of unique values."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {_value_text(value)}")


def not_found(field: str, value: object) -> FieldError:
    """The value names something that is not there."""
    return FieldError("FieldValueNotFound", field, f"Not found: {_value_text(value)}")


def forbidden(field: str, detail: str) -> FieldError:
    """The field may not be given, or not be changed."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def too_long(field: str, limit: int) -> FieldError:
    """The text has more bytes than allowed."""
    unit = "byte" if limit == 1 else "bytes"
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} {unit}")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """The list has more items than allowed."""
    unit = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooMany", field, f"Too many: {count}: must have at most {limit} {unit}")
