"""Parse durations and times in options."""

from __future__ import annotations

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, as_float_s, duration


def positive_duration(option: str, text: str) -> Duration:
    """Parse the value of an option as a duration above 0. Raises InputError."""
    try:
        length = duration(text)
    except ValueError as error:
        raise InputError(f"{option} {text}", problem=str(error)) from error
    if length <= 0:
        raise InputError(f"{option} {text}", problem="must be longer than 0")
    return length


def time_option_s(option: str, text: str | None) -> float | None:
    """Parse the value of an option as a time in seconds since the start of a run. Raises InputError."""
    if text is None:
        return None
    try:
        return as_float_s(duration(text))
    except ValueError as error:
        raise InputError(option, problem=str(error)) from error
