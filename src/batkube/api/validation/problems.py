"""The list of validation errors of an object, in kube-apiserver's order.

A check takes the value, its path and the list, and appends errors to the list. The order of the checks is the order of
the causes in the answer, so it follows Kubernetes' own (pkg/apis/*/validation).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError

#: Go prints nothing for `field.OmitValueType{}`.
OMITTED = object()

NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"
IMMUTABLE = "field is immutable"


def mark_repeats(values: Sequence[str]) -> list[bool]:
    """Return for each value whether an earlier one equals it."""
    first = dict(zip(reversed(values), reversed(range(len(values))), strict=True))
    return [first[value] != index for index, value in enumerate(values)]


#: The maximum length of all errors of one object, in characters. kube-apiserver has no such limit: its answer to a
#: large object with an error in each part may be a hundred times larger than the object.
_CHARACTERS_MAX = 4 * 1024 * 1024


class Problems(list[FieldError]):
    """Field errors in order; the methods are the error types (apimachinery: field.ErrorType)."""

    def __init__(self) -> None:
        super().__init__()
        self._length = 0
        #: Values that have passed their checks already: several checks validate the metadata.
        self.validated_metadata: object = None

    @property
    def is_full(self) -> bool:
        """Whether the maximum length is reached; further errors are dropped."""
        return self._length > _CHARACTERS_MAX

    def append(self, problem: FieldError) -> None:
        """Append an error, unless the list is full."""
        if not self.is_full:
            self._length += len(problem.field) + len(problem.message)
            super().append(problem)

    def required(self, path: str, detail: str = "") -> None:
        """Report a required field that is not set."""
        self.append(field_errors.required(path, detail))

    def invalid(self, path: str, value: object, detail: str) -> None:
        """Report a value that is malformed or out of range."""
        if value is OMITTED:
            self.append(FieldError("FieldValueInvalid", path, f"Invalid value: {detail}"))
        else:
            self.append(field_errors.invalid(path, value, detail))

    def all_invalid(self, path: str, value: object, details: Iterable[str]) -> None:
        """Report each of the errors that a rule of `names` found in a value."""
        for detail in details:
            self.append(field_errors.invalid(path, value, detail))

    def not_supported(self, path: str, value: object, supported: Iterable[str]) -> None:
        """Report a value that is not one of the supported ones, which are listed in the given order."""
        self.append(field_errors.not_supported_in_order(path, value, supported))

    def duplicate(self, path: str, value: object, detail: str = "") -> None:
        """Report a value that occurs twice in a list of unique values."""
        error = field_errors.duplicate(path, value)
        self.append(FieldError(error.reason, path, f"{error.message}: {detail}") if detail else error)

    def not_found(self, path: str, value: object, detail: str = "") -> None:
        """Report a reference to a name that does not exist."""
        error = field_errors.not_found(path, value)
        self.append(FieldError(error.reason, path, f"{error.message}: {detail}") if detail else error)

    def forbidden(self, path: str, detail: str) -> None:
        """Report a field that must not be set, or must not change."""
        self.append(field_errors.forbidden(path, detail))

    def too_long(self, path: str, limit: int) -> None:
        """Report a string with too many bytes."""
        self.append(field_errors.too_long(path, limit))

    def too_many(self, path: str, count: int, limit: int) -> None:
        """Report a list with too many items."""
        self.append(field_errors.too_many(path, count, limit))

    def internal(self, path: str, detail: str) -> None:
        """Report a value that the server failed to validate."""
        self.append(FieldError("InternalError", path, f"Internal error: {detail}"))

    def not_negative(self, path: str, value: int) -> None:
        """Report an error unless `value` is zero or more."""
        if value < 0:
            self.invalid(path, value, NOT_NEGATIVE)

    def positive(self, path: str, value: int) -> None:
        """Report an error unless `value` is greater than zero."""
        if value <= 0:
            self.invalid(path, value, POSITIVE)

    def unchanged(self, path: str, new: object, old: object) -> None:
        """Report an immutable field that has changed; unset and empty are equal."""
        if new != old and (new or old):
            self.invalid(path, new, IMMUTABLE)
