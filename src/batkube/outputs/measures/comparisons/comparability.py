"""Which runs may be called better or worse than others, and what to put beside those that may not.

Three ways to good numbers are none: to give away what is not there, to leave jobs out, and to break down where it is
hard. A job that never ran has no wait, so whoever turns away all that would have to wait has a mean wait of 0; and of
a scheduler that fails under load, the runs that completed are those of the easy workloads. Numbers of such runs are
shown, with a sign, and compared with nobody's. The same signs stand in tables, figures and papers.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence


class Comparability(enum.Enum):
    """Whether the numbers of a run can be held against those of others."""

    COMPARABLE = ""
    #: It never ran jobs that another one of the same task ran.
    FEWER_JOBS = "‡"
    #: Some runs of it failed that others completed, so that its means are of other workloads.
    FAILED_RUNS = "¶"
    #: Its scheduler did what no cluster allows.
    VIOLATIONS = "✗"

    @property
    def sign(self) -> str:
        """What stands beside its name or numbers."""
        return self.value

    @property
    def meaning(self) -> str:
        """What the sign says, after it."""
        return _MEANINGS[self]

    def marked(self, label: str) -> str:
        """Return the label with the sign."""
        return f"{label} {self.sign}".strip()


_MEANINGS = {
    Comparability.COMPARABLE: "",
    Comparability.FEWER_JOBS: "ran fewer jobs than others, so its means are not compared",
    Comparability.FAILED_RUNS: "failed in runs that others completed, so its means are of other workloads and not "
    "compared",
    Comparability.VIOLATIONS: "did what no cluster allows, so its means are not compared",
}


def comparability_of(violations: Sequence[float], never_run: Sequence[float]) -> list[Comparability]:
    """Return how each of several runs of one task stands: by its violations, and the jobs that it never ran."""
    possible = [left for left, broken in zip(never_run, violations, strict=True) if not broken]
    fewest = min(possible, default=0)
    return [
        Comparability.VIOLATIONS if broken else Comparability.FEWER_JOBS if left > fewest else Comparability.COMPARABLE
        for left, broken in zip(never_run, violations, strict=True)
    ]


def not_comparable(those: Sequence[Comparability]) -> list[Comparability]:
    """Return those of the standings that need a word of explanation, each once."""
    return [
        one for one in (Comparability.FEWER_JOBS, Comparability.FAILED_RUNS, Comparability.VIOLATIONS) if one in those
    ]
