"""Ages and durations in the short form of `kubectl get`."""

from __future__ import annotations

import re

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, instant_of

UNKNOWN = "<unknown>"
INVALID = "<invalid>"
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def time_since(timestamp: str | None, now: Instant) -> str:
    """Format the time since `timestamp` (Kubernetes: translateTimestampSince)."""
    return human_duration(now - instant_of(timestamp)) if timestamp else UNKNOWN


def age(value: KubeObject, now: Instant) -> str:
    """Format the age of an object."""
    return time_since(value["metadata"].get("creationTimestamp"), now)


def time_between(start: str, end: str) -> str:
    """Format the time from one timestamp to another."""
    return human_duration(instant_of(end) - instant_of(start))


def human_duration(ns: int) -> str:
    """Format a duration with two or three digits of precision.

    Kubernetes: apimachinery/pkg/util/duration, HumanDuration, which tolerates up to two seconds in the future for clock
    skew.
    """
    if ns <= -2 * NANOSECONDS_PER_SECOND:
        return INVALID
    seconds = max(ns, 0) // NANOSECONDS_PER_SECOND
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two_parts(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_parts(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_parts(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two_parts(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two_parts(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def time_since_any_format(text: str, now: Instant) -> str:
    """Format the time since a timestamp in any format, for columns of custom resources.

    Kubernetes: apiextensions-apiserver/pkg/registry/customresource/tableconvertor, cellForJSONValue.
    """
    if text in ("", "null"):
        return UNKNOWN
    try:
        return time_since(text, now) if _RFC3339.fullmatch(text) else INVALID
    except ValueError:
        return INVALID
