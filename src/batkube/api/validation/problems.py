"""The list that validation fills: every problem of an object, in the order the real server reports them.

Checks take the value, its path and the list, and add to the list; a check that has nothing to say costs nothing. The
order of the checks is the order of the causes in the answer, so it follows Kubernetes' own (pkg/apis/*/validation).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError

#: How Go prints `field.OmitValueType{}`: not at all.
OMITTED = object()

NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"
IMMUTABLE = "field is immutable"


def mark_repeats(values: Sequence[str]) -> list[bool]:
    """Return for each of the values whether it was among those before it."""
    first = dict(zip(reversed(values), reversed(range(len(values))), strict=True))
    return [first[value] != index for index, value in enumerate(values)]


#: How much is told of one object, in characters. The real server has no such limit; its answer to a large object with
#: a fault in each part may be a hundred times as large.
_CHARACTERS_MAX = 4 * 1024 * 1024


class Problems(list[FieldError]):
    """Field errors in order; the methods are the kinds of error there are (apimachinery: field.ErrorType)."""

    def __init__(self) -> None:
        super().__init__()
        self._length = 0
        #: What was found good already, and need not be looked at again: metadata, which several checks ask for.
        self.validated_metadata: object = None

    @property
    def is_full(self) -> bool:
        """Whether enough has been told; what is added from here on is dropped."""
        return self._length > _CHARACTERS_MAX

    def append(self, problem: FieldError) -> None:
        """Add a problem, while there is room."""
        if not self.is_full:
            self._length += len(problem.field) + len(problem.message)
            super().append(problem)

    def required(self, path: str, detail: str = "") -> None:
        """The field must be given."""
        self.append(field_errors.required(path, detail))

    def invalid(self, path: str, value: object, detail: str) -> None:
        """The value is malformed or out of range."""
        if value is OMITTED:
            self.append(FieldError("FieldValueInvalid", path, f"Invalid value: {detail}"))
        else:
            self.append(field_errors.invalid(path, value, detail))

    def all_invalid(self, path: str, value: object, details: Iterable[str]) -> None:
        """The value is wrong in each of these ways, as the rules of `names` tell them."""
        for detail in details:
            self.append(field_errors.invalid(path, value, detail))

    def not_supported(self, path: str, value: object, supported: Iterable[str]) -> None:
        """The value is none of those allowed, which are listed in the order given."""
        self.append(field_errors.not_supported_in_order(path, value, supported))

    def duplicate(self, path: str, value: object, detail: str = "") -> None:
        """The value is there twice in a list of unique values."""
        error = field_errors.duplicate(path, value)
        self.append(FieldError(error.reason, path, f"{error.message}: {detail}") if detail else error)

    def not_found(self, path: str, value: object, detail: str = "") -> None:
        """The value names something that is not there."""
        error = field_errors.not_found(path, value)
        self.append(FieldError(error.reason, path, f"{error.message}: {detail}") if detail else error)

    def forbidden(self, path: str, detail: str) -> None:
        """The field may not be given, or not be changed."""
        self.append(field_errors.forbidden(path, detail))

    def too_long(self, path: str, limit: int) -> None:
        """The text has more bytes than allowed."""
        self.append(field_errors.too_long(path, limit))

    def too_many(self, path: str, count: int, limit: int) -> None:
        """The list has more items than allowed."""
        self.append(field_errors.too_many(path, count, limit))

    def internal(self, path: str, detail: str) -> None:
        """The server could not even judge the value."""
        self.append(FieldError("InternalError", path, f"Internal error: {detail}"))

    def not_negative(self, path: str, value: int) -> None:
        """Object unless `value` is zero or more."""
        if value < 0:
            self.invalid(path, value, NOT_NEGATIVE)

    def positive(self, path: str, value: int) -> None:
        """Object unless `value` is more than zero."""
        if value <= 0:
            self.invalid(path, value, POSITIVE)

    def unchanged(self, path: str, new: object, old: object) -> None:
        """Object when a field that is fixed at creation differs; absent and empty are the same."""
        if new != old and (new or old):
            self.invalid(path, new, IMMUTABLE)
