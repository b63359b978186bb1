"""Different colours for adjacent boxes of an overview.

With thousands of boxes there is no space for outlines, and two adjacent jobs with the same colour look like one. A job
keeps the colour that follows from its id unless an adjacent job has it. In print, where a reader may not see colours,
it keeps it unless an adjacent job is about as light.
"""

from __future__ import annotations

import numpy as np

from batkube.outputs.charts.palette import FILLS, lightness
from batkube.outputs.gantt.lanes import Boxes
from batkube.outputs.measures.occupancy.stays import Ints

#: Resolution at which boxes count as adjacent; finer details are not visible on paper.
_COLUMNS, _MAX_ROWS = 1200, 1500
_NO_JOB = -1
#: Fills whose lightness (0 to 1) differs by less look the same in grey.
MIN_LIGHTNESS_DIFFERENCE = 0.06


def distinct_fills(
    fills: list[str], boxes: Boxes, machines: int, start_s: float, end_s: float, *, in_grey: bool = False
) -> list[str]:
    """Return the fills of all subjects, changed where adjacent boxes would have the same one.

    With `in_grey`, fills that are about as light count as the same, and the most different one is chosen instead.
    """
    neighbours: dict[int, set[int]] = {}
    for first, second in _touching_pairs(_subject_grid(boxes, machines, start_s, end_s)):
        neighbours.setdefault(int(first), set()).add(int(second))
        neighbours.setdefault(int(second), set()).add(int(first))
    result = list(fills)
    for subject in sorted(neighbours):
        # Later subjects still have the colours of their ids, and are changed later.
        neighbour_fills = {result[other] for other in neighbours[subject] if other < subject}
        if in_grey:
            if _distance(result[subject], neighbour_fills) < MIN_LIGHTNESS_DIFFERENCE:
                result[subject] = max(FILLS, key=lambda fill: _distance(fill, neighbour_fills))
        elif result[subject] in neighbour_fills:
            result[subject] = next((fill for fill in FILLS if fill not in neighbour_fills), result[subject])
    return result


def _distance(fill: str, others: set[str]) -> float:
    """Return the smallest difference in lightness between a fill and the others; black to white is 1."""
    return min((abs(lightness(fill) - lightness(other)) for other in others), default=1.0)


def _subject_grid(boxes: Boxes, machines: int, start_s: float, end_s: float) -> Ints:
    """Return the subject whose box is visible in each row and column."""
    rows = min(machines, _MAX_ROWS)
    grid = np.full((rows, _COLUMNS), _NO_JOB, dtype=np.int64)
    across, down = _COLUMNS / (end_s - start_s), rows / machines
    left = np.clip(((boxes.left - start_s) * across).astype(np.int64), 0, _COLUMNS - 1)
    right = np.clip(np.ceil((boxes.right - start_s) * across).astype(np.int64), left + 1, _COLUMNS)
    top = np.clip((boxes.top * down).astype(np.int64), 0, rows - 1)
    bottom = np.clip(np.ceil(boxes.bottom * down).astype(np.int64), top + 1, rows)
    for box, subject in enumerate(boxes.job):
        grid[top[box] : bottom[box], left[box] : right[box]] = subject
    return grid


def _touching_pairs(grid: Ints) -> Ints:
    """Return each pair of subjects that are adjacent in the grid."""
    pairs = np.concatenate(
        [
            np.stack((grid[:, :-1].ravel(), grid[:, 1:].ravel()), axis=1),
            np.stack((grid[:-1].ravel(), grid[1:].ravel()), axis=1),
        ]
    )
    different = (pairs[:, 0] != pairs[:, 1]) & (pairs != _NO_JOB).all(axis=1)
    result: Ints = np.unique(np.sort(pairs[different], axis=1), axis=0)
    return result
