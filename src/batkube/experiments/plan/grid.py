"""The grid: every combination of the axes' values, with every seed and repeat.

The order is the file's: the first axis varies slowest, then the others, then the seeds; repeats vary fastest. Tables
keep that order, whatever order the runs end in.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from batkube.experiments.description.experiment_file import Experiment


@dataclass(frozen=True, slots=True)
class Point:
    """One run of the grid."""

    #: The label on each axis, by the axis' name.
    labels: Mapping[str, str]
    seed: int
    #: Counted from 1.
    repeat: int
    #: Its scenario, as written in the file.
    content: Mapping[str, object]

    @property
    def coordinates(self) -> dict[str, str]:
        """The names that a rule may use, with their values: axes, seed and repeat."""
        return {**self.labels, "seed": str(self.seed), "repeat": str(self.repeat)}

    def describe(self) -> str:
        """Return a description for messages."""
        return ", ".join([*(f"{name}={label}" for name, label in self.labels.items()), f"seed={self.seed}"])


def points(experiment: Experiment) -> Iterator[Point]:
    """Yield the points of the grid in order, without those that are excluded."""
    for values in itertools.product(*(axis.values for axis in experiment.axes)):
        labels = {axis.name: value.label for axis, value in zip(experiment.axes, values, strict=True)}
        content = dict(experiment.base)
        for value in values:
            content = apply_settings(content, value.settings)
        for seed in experiment.seeds:
            for repeat in range(1, experiment.repeats + 1):
                point = Point(labels, seed, repeat, {**content, "seed": seed})
                if not any(matches(point, rule) for rule in experiment.exclude):
                    yield point


def apply_settings(content: Mapping[str, object], settings: Mapping[str, object]) -> dict[str, object]:
    """Return `content` with `settings` applied; a dotted key sets one entry of a mapping and keeps the others."""
    changed = dict(content)
    for key, value in settings.items():
        outer, dot, inner = key.partition(".")
        if dot:
            inner_content = changed.get(outer)
            changed[outer] = apply_settings(inner_content if isinstance(inner_content, Mapping) else {}, {inner: value})
        else:
            changed[key] = value
    return changed


def matches(point: Point, rule: Mapping[str, Collection[str]]) -> bool:
    """Return whether a point has one of a rule's labels for each name in the rule."""
    names = point.coordinates
    return all(names[name] in labels for name, labels in rule.items())
