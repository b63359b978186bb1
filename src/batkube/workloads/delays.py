"""Delay profiles by run time: equal run times share one profile, so that a long trace holds few of them."""

from __future__ import annotations

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration
from batkube.workloads.model import Delay


def exact_seconds(ns: int) -> str:
    """Return `ns` as decimal seconds with no digit lost and none too many: `90`, `0.5`, `20.2`."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), NANOSECONDS_PER_SECOND)
    return f"{sign}{whole}.{rest:09d}".rstrip("0") if rest else f"{sign}{whole}"


class DelayProfiles:
    """Hands out the one profile `delay<seconds>` of each run time."""

    def __init__(self) -> None:
        self._by_duration: dict[int, Delay] = {}

    def of(self, duration: Duration) -> Delay:
        """Return the profile that lasts `duration`."""
        profile = self._by_duration.get(duration)
        if profile is None:
            profile = Delay(name=f"delay{exact_seconds(duration)}", duration=duration)
            self._by_duration[duration] = profile
        return profile
