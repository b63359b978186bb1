"""Select a part of a grid by the labels of its runs: `{"timeout": ["0ms", "exact"], "repeat": [1]}`.

Run a part of a long experiment first, to see whether the rest is worthwhile. The runs of the part belong to the whole
grid, so the rest can be run later in the same folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batkube.experiments.description.axes import label_of
from batkube.experiments.description.experiment_file import Experiment
from batkube.experiments.description.ranges import label_in_seconds
from batkube.experiments.plan.grid import Point, matches
from batkube.kernel.errors import InputError
from batkube.text.suggestions import check_names

#: Labels, of which a run must have one, by axis, `seed` or `repeat`.
GridSelection = Mapping[str, Sequence[object]]

#: The command-line option, for messages.
OPTION = "--only"


def parse_selection(texts: Sequence[str]) -> dict[str, list[str]]:
    """Parse selections such as `timeout=0ms,exact`. Raises InputError."""
    selection: dict[str, list[str]] = {}
    for text in texts:
        name, equals, labels = text.partition("=")
        if not equals or not labels:
            problem = f"{text!r} has no values"
            raise InputError(OPTION, problem=problem, remedy="write an axis and labels, such as timeout=0ms,exact")
        selection.setdefault(name.strip(), []).extend(label.strip() for label in labels.split(","))
    return selection


def select_points(points: Sequence[Point], selection: GridSelection, experiment: Experiment) -> list[Point]:
    """Return the points that have one of the labels of each name in `selection`. Raises InputError."""
    labels_of = {axis.name: axis.labels for axis in experiment.axes}
    labels_of["seed"] = [str(seed) for seed in experiment.seeds]
    labels_of["repeat"] = [str(repeat) for repeat in range(1, experiment.repeats + 1)]
    check_names(selection, labels_of, OPTION, "", "an axis, seed or repeat")
    accepted = {
        name: {_matching_label(value, labels_of[name]) for value in labels} for name, labels in selection.items()
    }
    for name, labels in accepted.items():
        check_names(sorted(labels), labels_of[name], OPTION, name, f"a value of {name}")
    selected = [point for point in points if matches(point, accepted)]
    if points and not selected:
        raise InputError(OPTION, problem="leaves no run", remedy="name values that the file does not exclude")
    return selected


def _matching_label(value: object, labels: Sequence[str]) -> str:
    """Return the label for a value: a duration may be written in another unit, `1s` for `1000ms`."""
    label = label_of(value)
    length = None if label in labels else label_in_seconds(label)
    return label if length is None else next((other for other in labels if label_in_seconds(other) == length), label)
