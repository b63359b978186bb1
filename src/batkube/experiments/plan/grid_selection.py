"""A part of a grid, by the labels that its runs have: `{"timeout": ["0ms", "exact"], "repeat": [1]}`.

A grid of many hours is best begun with a part that shows whether the rest is worth it. The part's runs belong to the
whole grid, so the same folder goes on with the rest later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batkube.experiments.description.axes import label_of
from batkube.experiments.description.experiment_file import Experiment
from batkube.experiments.description.ranges import label_in_seconds
from batkube.experiments.plan.grid import Point, matches
from batkube.kernel.errors import InputError
from batkube.kernel.text.suggestions import check_names

#: What a run must have one of, by axis, `seed` or `repeat`.
GridSelection = Mapping[str, Sequence[object]]

#: Where a part comes from, in messages.
OPTION = "--only"


def parse_selection(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the part that words such as `timeout=0ms,exact` name. Raises InputError."""
    part: dict[str, list[str]] = {}
    for text in texts:
        name, equals, labels = text.partition("=")
        if not equals or not labels:
            problem = f"{text!r} names no values"
            raise InputError(OPTION, problem=problem, remedy="write an axis and labels, such as timeout=0ms,exact")
        part.setdefault(name.strip(), []).extend(label.strip() for label in labels.split(","))
    return part


def select_points(points: Sequence[Point], part: GridSelection, experiment: Experiment) -> list[Point]:
    """Return those of `points` that have a label of each name in `part`. Raises InputError."""
    known = {axis.name: axis.labels for axis in experiment.axes}
    known["seed"] = [str(seed) for seed in experiment.seeds]
    known["repeat"] = [str(repeat) for repeat in range(1, experiment.repeats + 1)]
    check_names(part, known, OPTION, "", "an axis, seed or repeat")
    wanted = {name: {_matching_label(value, known[name]) for value in labels} for name, labels in part.items()}
    for name, labels in wanted.items():
        check_names(sorted(labels), known[name], OPTION, name, f"a value of {name}")
    chosen = [point for point in points if matches(point, wanted)]
    if points and not chosen:
        raise InputError(OPTION, problem="leaves no run", remedy="name values that the file does not exclude")
    return chosen


def _matching_label(value: object, known: Sequence[str]) -> str:
    """Return the label that is meant: a duration may be written in another unit, `1s` for `1000ms`."""
    label = label_of(value)
    length = None if label in known else label_in_seconds(label)
    return label if length is None else next((one for one in known if label_in_seconds(one) == length), label)
