"""Validation of integers or percentages (IntOrString), such as maxUnavailable of a rollout.

Kubernetes: pkg/apis/apps/validation (ValidatePositiveIntOrPercent, IsNotMoreThan100Percent).
"""

from __future__ import annotations

from batkube.api.validation.names import percentage
from batkube.api.validation.problems import Problems
from batkube.kernel.numbers import parse_int

IntOrPercent = int | str


def check_positive_int_or_percent(portion: IntOrPercent, path: str, problems: Problems) -> None:
    """Check for a percentage or a non-negative integer."""
    if isinstance(portion, str):
        problems.all_invalid(path, portion, percentage(portion))
    else:
        problems.not_negative(path, portion)


def int_value(portion: IntOrPercent) -> int:
    """Return the number without the percent sign; 0 for a string that is not a percentage."""
    if isinstance(portion, int):
        return portion
    digits = portion if percentage(portion) else portion.removesuffix("%")
    try:
        return parse_int(digits) or 0
    except ValueError:
        return 0


def check_at_most_100_percent(portion: IntOrPercent, path: str, problems: Problems) -> None:
    """Check that a percentage is not more than 100 %."""
    if isinstance(portion, str) and not percentage(portion) and int_value(portion) > 100:
        problems.invalid(path, portion, "must not be greater than 100%")
