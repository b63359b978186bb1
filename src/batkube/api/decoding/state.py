"""The state of a decoder: its path in the object, and the errors so far.

The path is kept in a form that is cheap to maintain; messages are formatted only if there is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from batkube.text.go_format import go_quote

#: The maximal number of strict errors (sigs.k8s.io/json, saveStrictError).
STRICT_ERRORS_LIMIT = 100


class DecodeError(Exception):
    """The value does not fit the schema; the message is Go's."""


class NumberWithText(float):
    """A number with an unusual text, such as 1.50 or 1e3, which quantities and error messages need."""

    text: str

    def __new__(cls, text: str) -> NumberWithText:
        """Return the number with its text."""
        number = super().__new__(cls, text)
        number.text = text
        return number


#: The name of a JSON type in Go's messages, by Python type.
_GO_KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    NumberWithText: "number",
}


class StructField:
    """A field in a path: its JSON name and the Go struct that contains it."""

    __slots__ = ("name", "struct")

    def __init__(self, name: str, struct: str) -> None:
        self.name = name
        self.struct = struct


class DecodingState:
    """The state of one decoding."""

    __slots__ = ("error", "path", "unknown", "within")

    def __init__(self, within: DecodingState | None = None) -> None:
        #: The outer decoding, if this one is within a type with its own UnmarshalJSON. It is then not strict, and its
        #: errors name only the path of that type.
        self.within = within
        #: Fields of structs, indices of lists (int) and keys of maps (str), outermost first.
        self.path: list[StructField | int | str] = []
        #: The errors of strict decoding.
        self.unknown: list[str] = []
        #: Go's message about the first value of a wrong type; "" if there is none.
        self.error = ""

    def record_unknown_field(self, key: str) -> None:
        """Record a field that the struct does not have."""
        if self.within is None and len(self.unknown) < STRICT_ERRORS_LIMIT:
            path = [part.name if isinstance(part, StructField) else part for part in self.path]
            self.unknown.append(f"unknown field {go_quote(field_path_text(path, key))}")

    def record_type_mismatch(self, value: Any, go: str) -> None:  # noqa: ANN401 - any JSON
        """Record that `value` is not of the Go type `go`; decoding continues."""
        self.error = self.error or self._message(_GO_KINDS[type(value)], go)

    def record_out_of_range(self, number: float, go: str) -> None:
        """Record that `number` is out of range of the Go type `go`; decoding continues."""
        self.error = self.error or self._message(f"number {number_text(number)}", go)

    def fail(self, value: Any, go: str) -> NoReturn:  # noqa: ANN401 - any JSON
        """Raise DecodeError at once, as types with their own UnmarshalJSON do."""
        has_number = isinstance(value, int | float) and not isinstance(value, bool) and go in ("int32", "int64")
        description = f"number {number_text(value)}" if has_number else _GO_KINDS[type(value)]
        raise DecodeError(self._message(description, go))

    def _message(self, description: str, go: str) -> str:
        if self.within is not None:
            return self.within._message(description, go)
        fields = [part for part in self.path if isinstance(part, StructField)]
        if not fields:
            return f"json: cannot unmarshal {description} into Go value of type {go}"
        names = ".".join(field.name for field in fields)
        return f"json: cannot unmarshal {description} into Go struct field {fields[-1].struct}.{names} of type {go}"


Decoder = Callable[[Any, DecodingState], Any]


def number_text(number: float) -> str:
    """Return a number as it was written in the document."""
    return number.text if isinstance(number, NumberWithText) else repr(number)


def field_path_text(path: list[str | int], key: str) -> str:
    """Return the field `key` below `path` as strict decoding names it: `spec.containers[0].bogus`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return ("".join(parts) + f".{key}").removeprefix(".")
