"""The experiment file: a base scenario, the axes that vary it, and how often each point is run.

Errors that can be found before anything runs are reported here, with their place and the closest valid name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from batkube.experiments.description.axes import Axis, AxisReader, label_of
from batkube.experiments.description.columns import reserved_columns
from batkube.experiments.description.figures import read_figures
from batkube.experiments.description.ranges import expand_range
from batkube.files.yaml_reader import read_yaml
from batkube.kernel.errors import InputError
from batkube.scenarios.keys import KEYS
from batkube.scenarios.scenario import TIME_LIMIT_KEY
from batkube.text.suggestions import check_names, suggestion

_KEYS = ("title", "description", "base", "axes", "seeds", "repeats", "exclude", "figures")
#: Stands for the file if the experiment is a mapping, in messages and as base of relative paths.
_MAPPING_SOURCE = Path("experiment")


@dataclass(frozen=True, slots=True)
class Experiment:
    """Several scenarios that answer one question."""

    #: The file; paths are relative to its folder.
    source: Path
    title: str
    description: str
    base: Mapping[str, object]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    repeats: int
    #: A point is excluded if, in one of these mappings, it has one of the labels for every name (an axis or `seed`).
    exclude: tuple[Mapping[str, tuple[str, ...]], ...]
    #: Figures of the report, as written; already checked (`figures.py`).
    figures: tuple[Mapping[str, object], ...]


def read_experiment(experiment: Path | Mapping[str, object]) -> Experiment:
    """Return the experiment that a file, or a mapping with the same keys, describes. Raises InputError."""
    source = _MAPPING_SOURCE if isinstance(experiment, Mapping) else experiment
    content = experiment if isinstance(experiment, Mapping) else read_yaml(experiment)
    if not isinstance(content, Mapping):
        raise InputError(source, problem="is not an experiment: a mapping is expected", remedy=suggestion("", _KEYS))
    if "base" not in content and "workload" in content:
        remedy = "put its keys below 'base', or use `batkube run`"
        raise InputError(source, problem="is a scenario, not an experiment", remedy=remedy)
    check_names(content, _KEYS, source, "", "a key of an experiment")
    base = _mapping(content, "base", source)
    check_names((key.split(".")[0] for key in base), KEYS, source, "base", "a key of a scenario")
    axes = _axes(content, source)
    figures = _mappings(content, "figures", source)
    read_figures(figures, source, {axis.name: axis.labels for axis in axes})
    seeds = _seeds(content, base, source)
    repeats = _repeats(content, source)
    count = math.prod((*(len(axis.values) for axis in axes), len(seeds), repeats))
    if count > _MAX_RUNS:
        problem = f"has {count:,} runs, more than {_MAX_RUNS:,}"
        raise InputError(source, problem=problem, remedy="vary less in one experiment")
    return Experiment(
        source=source,
        title=_text(content, "title", source),
        description=_text(content, "description", source),
        base=base,
        axes=axes,
        seeds=seeds,
        repeats=repeats,
        exclude=_exclude(content, axes, seeds, source),
        figures=tuple(figures),
    )


def with_time_limit(experiment: Experiment, limit: object) -> Experiment:
    """Return the experiment with a limit on the real time of each run; None keeps the limit of its file."""
    return experiment if limit is None else replace(experiment, base={**experiment.base, TIME_LIMIT_KEY: limit})


def _axes(content: Mapping[str, object], source: Path) -> tuple[Axis, ...]:
    axes: list[Axis] = []
    for name, values in _mapping(content, "axes", source).items():
        if name in reserved_columns():
            hint = "write seeds: 10, or a list" if name == "seed" else "choose another name, and add 'key' if necessary"
            raise InputError(source, at=f"axes.{name}", problem="is the name of a column of the results", remedy=hint)
        axis = AxisReader(name, source).read(values)
        for other in axes:
            for key in axis.keys:
                if any(_keys_overlap(key, other_key) for other_key in other.keys):
                    problem = f"sets {key!r}, which the axis {other.name!r} also sets"
                    raise InputError(source, at=f"axes.{name}", problem=problem, remedy="set each key by one axis only")
        axes.append(axis)
    return tuple(axes)


def _keys_overlap(first: str, second: str) -> bool:
    """Return whether two keys are equal, or one contains the other."""
    return f"{first}.".startswith(f"{second}.") or f"{second}.".startswith(f"{first}.")


def _seeds(content: Mapping[str, object], base: Mapping[str, object], source: Path) -> tuple[int, ...]:
    """Return the seeds: a list, a count of seeds from 0, a range, or the base's only one."""
    seeds = content.get("seeds")
    if seeds is None:
        seeds = [base.get("seed", 0)]
    elif "seed" in base:
        raise InputError(source, at="base.seed", problem="is set together with 'seeds'", remedy="keep one of them")
    if isinstance(seeds, Mapping):
        try:
            seeds = expand_range({"step": 1, **seeds})
        except ValueError as error:
            raise InputError(source, at="seeds", problem=str(error), remedy=_SEEDS) from error
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 0 < seeds <= _MAX_RUNS:
        seeds = list(range(seeds))
    if not isinstance(seeds, list) or not seeds or not _are_distinct_integers(seeds):
        raise InputError(source, at="seeds", problem=f"{seeds!r} is not a list of different seeds", remedy=_SEEDS)
    return tuple(int(seed) for seed in seeds)


#: An experiment with more runs is a mistake.
_MAX_RUNS = 1_000_000


def _are_distinct_integers(values: list[object]) -> bool:
    are_integers = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return are_integers and len(set(values)) == len(values)


_SEEDS = "a count, such as 10 (from 0 to 9), a list of whole numbers, or {from: 1, to: 10}"


def _repeats(content: Mapping[str, object], source: Path) -> int:
    repeats = content.get("repeats", 1)
    if not isinstance(repeats, int) or isinstance(repeats, bool) or not 1 <= repeats <= _MAX_RUNS:
        remedy = f"1 or more, and at most {_MAX_RUNS:,}"
        raise InputError(source, at="repeats", problem=f"{repeats!r} is not a number of repeats", remedy=remedy)
    return repeats


def _exclude(
    content: Mapping[str, object], axes: tuple[Axis, ...], seeds: tuple[int, ...], source: Path
) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    labels_by_name = {axis.name: axis.labels for axis in axes} | {"seed": [str(seed) for seed in seeds]}
    rules = []
    for number, rule in enumerate(_mappings(content, "exclude", source), start=1):
        at = f"exclude[{number}]"
        check_names(rule, labels_by_name, source, at, "an axis")
        labels = {name: _labels(value) for name, value in rule.items()}
        for name, values in labels.items():
            check_names(values, labels_by_name[name], source, f"{at}.{name}", f"a value of {name}")
        if not labels:
            raise InputError(source, at=at, problem="would exclude every run", remedy="name an axis and its values")
        rules.append(labels)
    return tuple(rules)


def _labels(value: object) -> tuple[str, ...]:
    return tuple(label_of(entry) for entry in value) if isinstance(value, list | tuple) else (label_of(value),)


def _mapping(content: Mapping[str, object], key: str, source: Path) -> dict[str, object]:
    mapping = content.get(key) or {}
    if not isinstance(mapping, Mapping):
        raise InputError(source, at=key, problem="is not a mapping", remedy=f"write {key}: and its keys below it")
    return {str(name): value for name, value in mapping.items()}


def _mappings(content: Mapping[str, object], key: str, source: Path) -> list[dict[str, object]]:
    mappings = content.get(key) or []
    if not isinstance(mappings, list | tuple) or not all(isinstance(mapping, Mapping) for mapping in mappings):
        raise InputError(source, at=key, problem="is not a list of mappings", remedy="begin each one with '- '")
    return [{str(name): value for name, value in mapping.items()} for mapping in mappings]


def _text(content: Mapping[str, object], key: str, source: Path) -> str:
    text = content.get(key) or ""
    if not isinstance(text, str):
        raise InputError(source, at=key, problem=f"{text!r} is not a string", remedy=f'write {key}: "…"')
    return text.strip()
