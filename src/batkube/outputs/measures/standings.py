"""Which runs may be called better or worse than others, and what to put beside those that may not.

Three ways to good numbers are none: to give away what is not there, to leave jobs out, and to break down where it is
hard. A job that never ran has no wait, so whoever turns away all that would have to wait has a mean wait of 0; and of
a scheduler that fails under load, the runs that completed are those of the easy workloads. Numbers of such runs are
shown, with a sign, and compared with nobody's. The same signs stand in tables, figures and papers.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence


class Standing(enum.Enum):
    """Whether the numbers of a run can be held against those of others."""

    FAIR = ""
    #: It never ran jobs that another one of the same task ran.
    SHORT = "‡"
    #: Some runs of it failed that others completed, so that its means are of other workloads.
    PARTIAL = "¶"
    #: Its scheduler did what no cluster allows.
    VOID = "✗"

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
    Standing.FAIR: "",
    Standing.SHORT: "ran fewer jobs than others, so its means are not compared",
    Standing.PARTIAL: "failed in runs that others completed, so its means are of other workloads and not compared",
    Standing.VOID: "did what no cluster allows, so its means are not compared",
}


def standings(violations: Sequence[float], never_run: Sequence[float]) -> list[Standing]:
    """Return how each of several runs of one task stands: by its violations, and the jobs that it never ran."""
    possible = [left for left, broken in zip(never_run, violations, strict=True) if not broken]
    fewest = min(possible, default=0)
    return [
        Standing.VOID if broken else Standing.SHORT if left > fewest else Standing.FAIR
        for left, broken in zip(never_run, violations, strict=True)
    ]


def unfair(those: Sequence[Standing]) -> list[Standing]:
    """Return those of the standings that need a word of explanation, each once."""
    return [one for one in (Standing.SHORT, Standing.PARTIAL, Standing.VOID) if one in those]
