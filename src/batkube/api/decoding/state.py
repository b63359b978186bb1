"""What a decoder knows while it works: where it is in the object, and what it found wrong.

The path is kept as it is cheap to keep; the words of a problem are put together only when there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from batkube.kernel.text.go_format import go_quote

#: So many strict errors are kept, at most (sigs.k8s.io/json, saveStrictError).
STRICT_ERRORS_LIMIT = 100


class DecodeError(Exception):
    """The value does not fit the schema; the message is Go's."""


class NumberWithText(float):
    """A number that is written unusually, such as 1.50 or 1e3, with its text, which quantities and messages need."""

    text: str

    def __new__(cls, text: str) -> NumberWithText:
        """Keep the text beside the number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


#: What Go's messages call a JSON value, by the Python type that stands for it.
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
    """A field on the way to a value: its JSON name and the Go struct that has it."""

    __slots__ = ("name", "struct")

    def __init__(self, name: str, struct: str) -> None:
        self.name = name
        self.struct = struct


class DecodingState:
    """One decoding at work."""

    __slots__ = ("error", "path", "unknown", "within")

    def __init__(self, within: DecodingState | None = None) -> None:
        #: The decoding that this one is part of, if a type with a reader of its own is at work: it is not strict, and
        #: Go tells only where that type is, not where in it a problem is.
        self.within = within
        #: Fields of structs, indices of lists (int) and keys of maps (str), from the outside in.
        self.path: list[StructField | int | str] = []
        #: What strict decoding complains about.
        self.unknown: list[str] = []
        #: The first value of a wrong type, in Go's words; "" if there is none.
        self.error = ""

    def record_unknown_field(self, key: str) -> None:
        """Note a field that the struct does not have."""
        if self.within is None and len(self.unknown) < STRICT_ERRORS_LIMIT:
            path = [part.name if isinstance(part, StructField) else part for part in self.path]
            self.unknown.append(f"unknown field {go_quote(field_path_text(path, key))}")

    def record_type_mismatch(self, value: Any, go: str) -> None:  # noqa: ANN401 - any JSON
        """Note that `value` cannot become a `go`, and carry on."""
        self.error = self.error or self._message(_GO_KINDS[type(value)], go)

    def record_out_of_range(self, number: float, go: str) -> None:
        """Note that `number` is not in the range of `go`, and carry on."""
        self.error = self.error or self._message(f"number {number_text(number)}", go)

    def fail(self, value: Any, go: str) -> NoReturn:  # noqa: ANN401 - any JSON
        """Fail at once, as types with a reader of their own do; a number is shown if it could have fitted."""
        has_number = isinstance(value, int | float) and not isinstance(value, bool) and go in ("int32", "int64")
        what = f"number {number_text(value)}" if has_number else _GO_KINDS[type(value)]
        raise DecodeError(self._message(what, go))

    def _message(self, what: str, go: str) -> str:
        if self.within is not None:
            return self.within._message(what, go)
        fields = [part for part in self.path if isinstance(part, StructField)]
        if not fields:
            return f"json: cannot unmarshal {what} into Go value of type {go}"
        names = ".".join(field.name for field in fields)
        return f"json: cannot unmarshal {what} into Go struct field {fields[-1].struct}.{names} of type {go}"


Decoder = Callable[[Any, DecodingState], Any]


def number_text(number: float) -> str:
    """Return a number as it was written."""
    return number.text if isinstance(number, NumberWithText) else repr(number)


def field_path_text(path: list[str | int], key: str) -> str:
    """Return how strict decoding names the field `key` below `path`: `spec.containers[0].bogus`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return ("".join(parts) + f".{key}").removeprefix(".")
