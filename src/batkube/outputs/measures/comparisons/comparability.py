"""Which runs may be compared with others, and the signs for those that may not.

A scheduler can have good numbers for three wrong reasons: it allocates resources that do not exist, rejects jobs, or
fails on hard workloads. A job that never ran has no wait, so a scheduler that rejects all jobs that would have to wait
has a mean wait of 0. If a scheduler fails under load, its completed runs are those of the easy workloads. The numbers
of such runs are shown with a sign, and are not compared with others. Tables, figures and papers use the same signs.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence


class Comparability(enum.Enum):
    """Whether the numbers of a run may be compared with those of others."""

    COMPARABLE = ""
    #: It did not run jobs that another run of the same task ran.
    FEWER_JOBS = "‡"
    #: It failed in runs that other schedulers completed, so its means are of other workloads.
    FAILED_RUNS = "¶"
    #: Its scheduler violated rules of every cluster.
    VIOLATIONS = "✗"

    @property
    def sign(self) -> str:
        """The mark beside the name or the numbers of the run."""
        return self.value

    @property
    def meaning(self) -> str:
        """Explanation of the sign, to be shown after it."""
        return _MEANINGS[self]

    def marked(self, label: str) -> str:
        """Return the label with the sign."""
        return f"{label} {self.sign}".strip()


_MEANINGS = {
    Comparability.COMPARABLE: "",
    Comparability.FEWER_JOBS: "ran fewer jobs than others, so its means are not compared",
    Comparability.FAILED_RUNS: "failed in runs that others completed, so its means are of other workloads and not "
    "compared",
    Comparability.VIOLATIONS: "violated rules of every cluster, so its means are not compared",
}


def comparability_of(violations: Sequence[float], never_run: Sequence[float]) -> list[Comparability]:
    """Return the comparability of each run of one task, from its violations and the number of jobs it never ran."""
    possible = [jobs for jobs, count in zip(never_run, violations, strict=True) if not count]
    fewest = min(possible, default=0)
    return [
        Comparability.VIOLATIONS if count else Comparability.FEWER_JOBS if jobs > fewest else Comparability.COMPARABLE
        for jobs, count in zip(never_run, violations, strict=True)
    ]


def not_comparable(values: Sequence[Comparability]) -> list[Comparability]:
    """Return the values that need an explanation, each once."""
    explained = (Comparability.FEWER_JOBS, Comparability.FAILED_RUNS, Comparability.VIOLATIONS)
    return [value for value in explained if value in values]
