"""Time zones by name, as Go's time.LoadLocation finds them and with its words for what it does not find."""

from __future__ import annotations

import datetime
import functools
import zoneinfo


class UnknownZone(ValueError):
    """There is no time zone of that name; the message is Go's."""


def zone_of(name: str) -> datetime.tzinfo:
    """Return the time zone `name`; the local one of every simulated machine is UTC."""
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
    """Return what stands before the slash in names of zones: folders of the database, over which Go stumbles."""
    return frozenset(zone.rpartition("/")[0] for zone in zoneinfo.available_timezones())
