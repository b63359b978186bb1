"""Which part of a run counts: without its beginning, when the cluster fills up, and its end, when it empties.

Means over a whole trace mix how a scheduler does in steady state with how an empty cluster does. A *trim* leaves out so
much time, so many jobs or such a share of the jobs at one end; what is between the two trims is the *window*. Jobs that
were submitted in the window count, and machines while it lasts. Without trims it goes from the first submission to the
end of the run: nothing can be busy before there is anything to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from batkube.kernel.instants import Instant, duration

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_JOBS = re.compile(r"(\d+)\s*jobs?")
TRIM_FORMATS = "a time (2d), a number of jobs (500jobs) or a share of them (10%)"


@dataclass(frozen=True, slots=True)
class Trim:
    """How much of one end of a run is left out: exactly one of the three, or nothing."""

    length: int = 0
    jobs: int = 0
    share: Fraction = Fraction(0)
    #: As it was written.
    text: str = ""

    def job_count(self, count: int) -> int:
        """Return how many of so many jobs it leaves out, if it counts jobs."""
        return self.jobs or int(count * self.share)


NO_TRIM = Trim()


def parse_trim(text: str) -> Trim:
    """Return the trim that `2d`, `500jobs` or `10%` means. Raises ValueError."""
    if match := _SHARE.fullmatch(text.strip()):
        share = Fraction(match[1]) / 100
        if share >= 1:
            raise ValueError(f"{text} leaves nothing")
        return Trim(share=share, text=text)
    if match := _JOBS.fullmatch(text.strip()):
        return Trim(jobs=int(match[1]), text=text)
    try:
        return Trim(length=duration(text), text=text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no such trim") from error


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when a run counts."""

    begin: Instant
    #: When the last job that counts may have been submitted; None where all do.
    last_submit: Instant | None

    def contains(self, submit: int) -> bool:
        """Return whether a job that was submitted then counts."""
        return self.begin <= submit and (self.last_submit is None or submit <= self.last_submit)

    def usage_end(self, end: Instant) -> Instant:
        """Return when machines cease to count in a run whose last job ended at `end`."""
        return max(self.begin, end if self.last_submit is None else min(end, self.last_submit))


def window_of(submits: Sequence[int], warm_up: Trim, cool_down: Trim) -> Window:
    """Return the window of a run whose jobs were submitted then."""
    ordered = sorted(submits)
    if not ordered:
        return Window(Instant(0), None)
    count = len(ordered)
    before, after = warm_up.job_count(count), cool_down.job_count(count)
    begin = ordered[before] + warm_up.length if before < count else ordered[-1] + 1
    last = ordered[count - 1 - after] - cool_down.length if after < count else ordered[0] - 1
    return Window(Instant(begin), None if cool_down == NO_TRIM else Instant(last))
