"""The part of a run that metrics cover, without warm-up and cool-down.

A mean over a whole trace mixes steady state with the phases in which the cluster fills up and empties. A *trim*
excludes one end of the run: a duration, a number of jobs or a share of the jobs. The part between both trims is the
*window*. Metrics cover the jobs submitted in the window, and the usage of machines during it. Without trims, the window
lasts from the first submission to the end of the run.
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
    """How much of one end of a run to exclude. At most one of the three is set."""

    length: int = 0
    jobs: int = 0
    share: Fraction = Fraction(0)
    #: The text it was parsed from.
    text: str = ""

    def job_count(self, count: int) -> int:
        """Return how many of `count` jobs to exclude; 0 if the trim is a duration."""
        return self.jobs or int(count * self.share)


NO_TRIM = Trim()


def parse_trim(text: str) -> Trim:
    """Parse a trim: `2d`, `500jobs` or `10%`. Raises ValueError."""
    if match := _SHARE.fullmatch(text.strip()):
        share = Fraction(match[1]) / 100
        if share >= 1:
            raise ValueError(f"{text} excludes the whole run")
        return Trim(share=share, text=text)
    if match := _JOBS.fullmatch(text.strip()):
        return Trim(jobs=int(match[1]), text=text)
    try:
        return Trim(length=duration(text), text=text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a trim; write {TRIM_FORMATS}") from error


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a run that metrics cover."""

    begin: Instant
    #: The last submission time that is covered; None if there is no limit.
    last_submit: Instant | None

    def contains(self, submit: int) -> bool:
        """Return whether a job submitted at `submit` is covered."""
        return self.begin <= submit and (self.last_submit is None or submit <= self.last_submit)

    def usage_end(self, end: Instant) -> Instant:
        """Return until when to measure usage in a run whose last job ended at `end`."""
        return max(self.begin, end if self.last_submit is None else min(end, self.last_submit))


def window_of(submits: Sequence[int], warm_up: Trim, cool_down: Trim) -> Window:
    """Return the window of a run with these submission times."""
    ordered = sorted(submits)
    if not ordered:
        return Window(Instant(0), None)
    count = len(ordered)
    before, after = warm_up.job_count(count), cool_down.job_count(count)
    begin = ordered[before] + warm_up.length if before < count else ordered[-1] + 1
    last = ordered[count - 1 - after] - cool_down.length if after < count else ordered[0] - 1
    return Window(Instant(begin), None if cool_down == NO_TRIM else Instant(last))
