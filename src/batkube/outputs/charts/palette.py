"""Fill colours and hatches of jobs, users, profiles and states, the same in every chart.

The fills are Paul Tol's *light* scheme (P. Tol, Colour Schemes, SRON/EPS/TN/09-002): distinguishable with any colour
vision, and light enough for black labels. Grey is reserved for "all others". The fills have two levels of lightness,
medium and light; in print, no two fills of one level have the same hatch.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

#: Values of `color_by`.
COLOURINGS = ("job", "user", "profile", "state")

FILLS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
OTHERS_FILL = "#CCCCCC"
#: Hatches that distinguish the fills in print without colours, in the order of FILLS. Lines only: LaTeX takes minutes
#: for a chart with dots.
HATCHES = ("", "\\\\\\", "++", "\\\\\\", "----", "||||", "||||", "----")

_TRAILING_NUMBER = re.compile(r"(\d+)$")


class LegendEntry(NamedTuple):
    """Legend entry of a fill; boxes of an `is_failure` entry have a dark outline. The hatch is "" if there is none."""

    fill: str
    label: str
    is_failure: bool = False
    hatch: str = ""


@dataclass(frozen=True, slots=True)
class Colouring:
    """A fill per job, and the legend, which is empty if each job has a colour of its own.

    The hatches are those of successful jobs, or of each final state; if empty, all failed jobs have the same hatch.
    """

    fills: list[str]
    legend: list[LegendEntry]
    hatches: list[str] = field(default_factory=list)


#: Colour and label of each final state, fixed so that charts of different runs agree.
STATES = {
    "COMPLETED_SUCCESSFULLY": LegendEntry("#77AADD", "succeeded"),
    "COMPLETED_FAILED": LegendEntry("#EE8866", "failed", is_failure=True, hatch="/////"),
    "COMPLETED_WALLTIME_REACHED": LegendEntry("#EEDD88", "reached its walltime", is_failure=True, hatch="-----"),
    "COMPLETED_KILLED": LegendEntry("#FFAABB", "killed", is_failure=True, hatch="+++++"),
    "REJECTED": LegendEntry("#DDDDDD", "rejected"),
    "SERVICE": LegendEntry(OTHERS_FILL, "pod without job"),
}


#: Hatches reserved for failures.
FAILURE_HATCHES = frozenset(entry.hatch for entry in STATES.values() if entry.is_failure)


def lightness(fill: str) -> float:
    """Return the lightness of a colour in grey, from 0 to 1 (the luma of ITU-R BT.709)."""
    red, green, blue = (int(fill[index : index + 2], 16) / 255 for index in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def colour_jobs(jobs: pd.DataFrame, by: str, *, for_print: bool = False) -> Colouring:
    """Return the fills of all jobs, in order, coloured by `job`, `user`, `profile` or `state`.

    For print, users and profiles also have hatches, since a reader may not see colours.
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
    return _colour_categories(jobs[by].tolist(), by, with_hatches=for_print)


def _fill_of_id(job_id: str) -> str:
    """Return the fill of a job id; consecutive ids get different ones, since such jobs are often neighbours."""
    number = _TRAILING_NUMBER.search(job_id)
    index = int(number[1]) if number else zlib.crc32(job_id.encode())
    return FILLS[index % len(FILLS)]


def _colour_categories(categories: Sequence[str], kind: str, *, with_hatches: bool) -> Colouring:
    """Assign colours to the categories with most jobs, in natural order of their names; the others are grey."""
    counts: dict[str, int] = {}
    for category in categories:
        counts[category] = counts.get(category, 0) + 1
    largest = sorted(counts, key=lambda category: (-counts[category], category))[: len(FILLS)]
    hatches = HATCHES if with_hatches else ("",) * len(FILLS)
    others = LegendEntry(OTHERS_FILL, f"{len(counts) - len(largest)} other {kind}s")
    entries = {
        category: LegendEntry(fill, category or f"(no {kind})", hatch=hatch)
        for category, fill, hatch in zip(sorted(largest, key=_natural_sort_key), FILLS, hatches, strict=False)
    }
    entry_by_job = [entries.get(category, others) for category in categories]
    legend = [*entries.values(), others] if len(counts) > len(entries) else list(entries.values())
    fills, hatch_by_job = [entry.fill for entry in entry_by_job], [entry.hatch for entry in entry_by_job]
    return Colouring(fills, legend, hatch_by_job if with_hatches else [])


def _natural_sort_key(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part]
