"""Lengths of time among the options."""

from __future__ import annotations

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, duration


def length_of(option: str, text: str) -> Duration:
    """Return the length of time that an option gives, which is more than nothing. Raises InputError."""
    try:
        length = duration(text)
    except ValueError as error:
        raise InputError(f"{option} {text}", problem=str(error)) from error
    if length <= 0:
        raise InputError(f"{option} {text}", problem="is not a length of time")
    return length
