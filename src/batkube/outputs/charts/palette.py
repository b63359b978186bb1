"""Colours that stay with their job, user, profile or state from one chart to the next.

The fills are Paul Tol's *light* scheme: told apart with any colour vision, and light enough for black labels on top
(P. Tol, Colour Schemes, SRON/EPS/TN/09-002). Grey is kept for "all others".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

#: What boxes can be coloured by.
COLOURINGS = ("job", "user", "profile", "state")

FILLS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
OTHERS = "#CCCCCC"

_TRAILING_NUMBER = re.compile(r"(\d+)$")


class LegendEntry(NamedTuple):
    """What a fill stands for; `alarming` when its boxes are hatched."""

    fill: str
    words: str
    alarming: bool = False


@dataclass(frozen=True, slots=True)
class Colouring:
    """A fill per job, and what the legend says of them (nothing when every job has its own)."""

    fills: list[str]
    legend: list[LegendEntry]


#: Final states have colours and words of their own, whichever of them a run has.
STATES = {
    "COMPLETED_SUCCESSFULLY": LegendEntry("#77AADD", "succeeded"),
    "COMPLETED_FAILED": LegendEntry("#EE8866", "failed", alarming=True),
    "COMPLETED_WALLTIME_REACHED": LegendEntry("#EEDD88", "reached its walltime", alarming=True),
    "COMPLETED_KILLED": LegendEntry("#FFAABB", "killed", alarming=True),
    "REJECTED": LegendEntry("#DDDDDD", "rejected"),
    "SERVICE": LegendEntry(OTHERS, "of no job"),
}


def colour_jobs(jobs: pd.DataFrame, by: str) -> Colouring:
    """Return the fills of all jobs, in order, coloured by `job`, `user`, `profile` or `state`."""
    if by == "job":
        return Colouring([_fill_of_id(job_id) for job_id in jobs["job_id"]], [])
    if by == "state":
        states = jobs["final_state"].tolist()
        legend = [entry for state, entry in STATES.items() if state in states and state != "REJECTED"]
        if any(state not in STATES for state in states):
            legend.append(LegendEntry(OTHERS, "other", alarming=True))
        return Colouring([STATES[state].fill if state in STATES else OTHERS for state in states], legend)
    return _by_category(jobs[by].tolist(), by)


def _fill_of_id(job_id: str) -> str:
    """Consecutive ids get different colours: such jobs are often neighbours."""
    number = _TRAILING_NUMBER.search(job_id)
    index = int(number[1]) if number else zlib.crc32(job_id.encode())
    return FILLS[index % len(FILLS)]


def _by_category(categories: Sequence[str], kind: str) -> Colouring:
    """The categories with most jobs get a colour each, in natural order of their names; the rest share grey."""
    counts: dict[str, int] = {}
    for category in categories:
        counts[category] = counts.get(category, 0) + 1
    largest = sorted(counts, key=lambda category: (-counts[category], category))[: len(FILLS)]
    fill_of = dict(zip(sorted(largest, key=_natural), FILLS, strict=False))
    legend = [LegendEntry(fill, category or f"(no {kind})") for category, fill in fill_of.items()]
    if len(counts) > len(fill_of):
        legend.append(LegendEntry(OTHERS, f"{len(counts) - len(fill_of)} other {kind}s"))
    return Colouring([fill_of.get(category, OTHERS) for category in categories], legend)


def _natural(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part]
