"""How long a job runs, where its profile says so by itself."""

from __future__ import annotations

from batkube.kernel.instants import Duration
from batkube.workloads.model import Composed, Delay, Profile


def run_time(profile: Profile) -> Duration | None:
    """Return how long `profile` takes on any machine; None when that depends on the machines."""
    if isinstance(profile, Delay):
        return profile.duration
    if isinstance(profile, Composed):
        total = 0
        for part in profile.parts:
            length = run_time(part)
            if length is None:
                return None
            total += length
        return Duration(total * profile.repeat)
    return None
