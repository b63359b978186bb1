"""Colours that stay with their job, user, profile or state from one chart to the next.

The fills are Paul Tol's *light* scheme: told apart with any colour vision, and light enough for black labels on top
(P. Tol, Colour Schemes, SRON/EPS/TN/09-002). Grey is kept for "all others". Their lightness is of two kinds, middle and
light, so that in print hatches go with them: no two of one kind have the same.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

#: What boxes can be coloured by.
COLOURINGS = ("job", "user", "profile", "state")

FILLS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
OTHERS_FILL = "#CCCCCC"
#: What tells the fills apart in print without colours, in the order of FILLS; all others have none. Lines alone: LaTeX
#: takes minutes for a chart with dots.
HATCHES = ("", "\\\\\\", "++", "\\\\\\", "----", "||||", "||||", "----")

_TRAILING_NUMBER = re.compile(r"(\d+)$")


class LegendEntry(NamedTuple):
    """What a fill stands for; `alarming` when its boxes have a dark outline. The hatch is "" where there is none."""

    fill: str
    label: str
    is_failure: bool = False
    hatch: str = ""


@dataclass(frozen=True, slots=True)
class Colouring:
    """A fill per job, and what the legend says of them (nothing when every job has its own).

    The hatches are of jobs that ended well, or of each final state; without any, all that ended badly have the same.
    """

    fills: list[str]
    legend: list[LegendEntry]
    hatches: list[str] = field(default_factory=list)


#: Final states have colours and words of their own, whichever of them a run has.
STATES = {
    "COMPLETED_SUCCESSFULLY": LegendEntry("#77AADD", "succeeded"),
    "COMPLETED_FAILED": LegendEntry("#EE8866", "failed", is_failure=True, hatch="/////"),
    "COMPLETED_WALLTIME_REACHED": LegendEntry("#EEDD88", "reached its walltime", is_failure=True, hatch="-----"),
    "COMPLETED_KILLED": LegendEntry("#FFAABB", "killed", is_failure=True, hatch="+++++"),
    "REJECTED": LegendEntry("#DDDDDD", "rejected"),
    "SERVICE": LegendEntry(OTHERS_FILL, "of no job"),
}


#: What alarms stands out by: no other hatch is one of these.
FAILURE_HATCHES = frozenset(entry.hatch for entry in STATES.values() if entry.is_failure)


def lightness(fill: str) -> float:
    """Return how light a colour is in grey, from 0 to 1 (the luma of ITU-R BT.709)."""
    red, green, blue = (int(fill[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def colour_jobs(jobs: pd.DataFrame, by: str, *, for_print: bool = False) -> Colouring:
    """Return the fills of all jobs, in order, coloured by `job`, `user`, `profile` or `state`.

    For print users and profiles have hatches, too: a reader may have no colours.
    """
    if by == "job":
        return Colouring([_fill_of_id(job_id) for job_id in jobs["job_id"]], [])
    if by == "state":
        states = jobs["final_state"].tolist()
        legend = [entry for state, entry in STATES.items() if state in states and state != "REJECTED"]
        if any(state not in STATES for state in states):
            legend.append(LegendEntry(OTHERS_FILL, "other", is_failure=True))
        fills = [STATES[state].fill if state in STATES else OTHERS_FILL for state in states]
        return Colouring(fills, legend, [STATES[state].hatch if state in STATES else "" for state in states])
    return _colour_categories(jobs[by].tolist(), by, hatched=for_print)


def _fill_of_id(job_id: str) -> str:
    """Consecutive ids get different colours: such jobs are often neighbours."""
    number = _TRAILING_NUMBER.search(job_id)
    index = int(number[1]) if number else zlib.crc32(job_id.encode())
    return FILLS[index % len(FILLS)]


def _colour_categories(categories: Sequence[str], kind: str, *, hatched: bool) -> Colouring:
    """The categories with most jobs get a colour each, in natural order of their names; the rest share grey."""
    counts: dict[str, int] = {}
    for category in categories:
        counts[category] = counts.get(category, 0) + 1
    largest = sorted(counts, key=lambda category: (-counts[category], category))[: len(FILLS)]
    hatches = HATCHES if hatched else ("",) * len(FILLS)
    others = LegendEntry(OTHERS_FILL, f"{len(counts) - len(largest)} other {kind}s")
    entries = {
        category: LegendEntry(fill, category or f"(no {kind})", hatch=hatch)
        for category, fill, hatch in zip(sorted(largest, key=_natural_sort_key), FILLS, hatches, strict=False)
    }
    looks = [entries.get(category, others) for category in categories]
    legend = [*entries.values(), others] if len(counts) > len(entries) else list(entries.values())
    return Colouring([look.fill for look in looks], legend, [look.hatch for look in looks] if hatched else [])


def _natural_sort_key(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part]
