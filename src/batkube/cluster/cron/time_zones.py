"""Looks up time zones by name, with the rules and messages of Go's time.LoadLocation."""

from __future__ import annotations

import datetime
import functools
import zoneinfo


class UnknownZone(ValueError):
    """The time zone does not exist; the message is Go's."""


def zone_of(name: str) -> datetime.tzinfo:
    """Return the time zone `name`; `Local` is UTC on every simulated machine."""
    if name in ("", "UTC", "Local"):
        return datetime.UTC
    if ".." in name or name.startswith(("/", "\\")):
        raise UnknownZone("time: invalid location name")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone("is a directory" if name in _zone_directories() else f"unknown time zone {name}") from None


@functools.cache
def _zone_directories() -> frozenset[str]:
    """Return the directories of the time zone database, such as `Europe`, for which Go reports another error."""
    return frozenset(zone.rpartition("/")[0] for zone in zoneinfo.available_timezones())
