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
    """Hands out the one profile of each run time and exit code."""

    def __init__(self) -> None:
        self._profiles: dict[tuple[int, int], Delay] = {}

    def profile_for(self, duration: Duration, exit_code: int = 0) -> Delay:
        """Return the profile that lasts `duration` and ends so: `delay90`, `delay90_exit1`."""
        profile = self._profiles.get((duration, exit_code))
        if profile is None:
            ending = f"_exit{exit_code}" if exit_code else ""
            profile = Delay(name=f"delay{exact_seconds(duration)}{ending}", duration=duration, ret=exit_code)
            self._profiles[duration, exit_code] = profile
        return profile
