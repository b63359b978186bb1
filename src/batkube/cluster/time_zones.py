"""Time zones by name, as Go's time.LoadLocation finds them and with its words for what it does not find."""

from __future__ import annotations

import datetime
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
    except IsADirectoryError:
        raise UnknownZone("is a directory") from None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(f"unknown time zone {name}") from None
