"""Lengths of time among the options."""

from __future__ import annotations

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, as_float_s, duration


def positive_duration(option: str, text: str) -> Duration:
    """Return the length of time that an option gives, which is more than nothing. Raises InputError."""
    try:
        length = duration(text)
    except ValueError as error:
        raise InputError(f"{option} {text}", problem=str(error)) from error
    if length <= 0:
        raise InputError(f"{option} {text}", problem="is not a length of time")
    return length


def time_option_s(option: str, text: str | None) -> float | None:
    """Return the moment that an option gives, in seconds from the start of a run; None for none. Raises InputError."""
    if text is None:
        return None
    try:
        return as_float_s(duration(text))
    except ValueError as error:
        raise InputError(option, problem=str(error)) from error
