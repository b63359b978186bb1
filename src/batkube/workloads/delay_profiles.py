"""Delay profiles by run time. Equal run times share one profile, which keeps long traces small in memory."""

from __future__ import annotations

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration
from batkube.workloads.model import Delay


def exact_seconds(ns: int) -> str:
    """Return `ns` as decimal seconds, exactly and without trailing zeros: `90`, `0.5`, `20.2`."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), NANOSECONDS_PER_SECOND)
    return f"{sign}{whole}.{rest:09d}".rstrip("0") if rest else f"{sign}{whole}"


class DelayProfiles:
    """Creates one delay profile per run time and exit code, and shares it."""

    def __init__(self) -> None:
        self._profiles: dict[tuple[int, int], Delay] = {}

    def profile_for(self, duration: Duration, exit_code: int = 0) -> Delay:
        """Return the profile of this run time and exit code, called for example `delay90` or `delay90_exit1`."""
        profile = self._profiles.get((duration, exit_code))
        if profile is None:
            ending = f"_exit{exit_code}" if exit_code else ""
            profile = Delay(name=f"delay{exact_seconds(duration)}{ending}", duration=duration, ret=exit_code)
            self._profiles[duration, exit_code] = profile
        return profile
