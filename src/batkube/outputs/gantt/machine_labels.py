"""Labels of the rows of a chart: of every machine if there is space, otherwise of groups of machines."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from batkube.outputs.charts.labels import FigureLabels

_NUMBER = re.compile(r"\d*$")
#: Height of a name in points, and the maximum number of names if not every machine has one.
_NAME_PT, _MAX_NAMES = 9, 25


@dataclass(frozen=True, slots=True)
class RowNames:
    """Labels of the rows."""

    #: Position, in rows from the top, and text.
    names: list[tuple[float, str]]
    #: Positions of the borders between groups, in rows from the top.
    borders: list[int]
    #: Whether each machine has its name.
    names_every_machine: bool


def row_names(machines: list[str], height_in: float, labels: FigureLabels) -> RowNames:
    """Return the labels for rows with a total height of `height_in`.

    Machines whose names differ only in their trailing number form a group: `gpu-0…299`. If all machines are in one
    group, every 2nd, 5th, 10th, … is labelled.
    """
    count = len(machines)
    if count <= int(height_in * 72 / _NAME_PT):
        names = [(row + 0.5, labels.text(name)) for row, name in enumerate(machines)]
        return RowNames(names, [], names_every_machine=True)
    groups = _groups(machines)
    min_distance = count * _NAME_PT / (height_in * 72)
    if 1 < len(groups) <= _MAX_NAMES and any(last - first + 1 >= min_distance for first, last in groups):
        names = [((first + last + 1) / 2, _group_name(machines, first, last, labels)) for first, last in groups]
        return RowNames(
            _without_overlaps(names, min_distance), [first for first, _ in groups[1:]], names_every_machine=False
        )
    names = [(row + 0.5, labels.text(machines[row])) for row in _labelled_rows(count, height_in)]
    return RowNames(names, [], names_every_machine=False)


def _groups(machines: list[str]) -> list[tuple[int, int]]:
    """Return the first and the last row of each group."""
    runs = itertools.groupby(range(len(machines)), lambda row: _NUMBER.sub("", machines[row]))
    rows = [list(group) for _, group in runs]
    return [(group[0], group[-1]) for group in rows]


def _group_name(machines: list[str], first: int, last: int, labels: FigureLabels) -> str:
    name = labels.text(machines[first])
    if first == last:
        return name
    end = _NUMBER.search(machines[last])
    return f"{name}…{end[0] if end else ''}"


def _without_overlaps(names: list[tuple[float, str]], min_distance: float) -> list[tuple[float, str]]:
    """Return the names that do not overlap the one before."""
    result: list[tuple[float, str]] = []
    for position, name in names:
        if not result or position - result[-1][0] >= min_distance:
            result.append((position, name))
    return result


def _labelled_rows(count: int, height_in: float) -> range:
    max_names = min(int(height_in * 72 / _NAME_PT), _MAX_NAMES)
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if count / (factor * scale) <= max_names:
                return range(0, count, factor * scale)
        scale *= 10
