"""The experiment file: a base scenario, the axes that vary it, and how often each point is run.

Errors that can be found before anything runs are reported here, with their place and the closest valid name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from batkube.experiments.description.axes import Axis, AxisReader, label_of
from batkube.experiments.description.columns import reserved_columns
from batkube.experiments.description.figures import read_figures
from batkube.experiments.description.ranges import expand_range
from batkube.kernel.errors import InputError
from batkube.kernel.files.yaml_reader import read_yaml
from batkube.kernel.text.suggestions import check_names, suggestion
from batkube.scenarios.keys import KEYS
from batkube.scenarios.scenario import TIME_LIMIT_KEY

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
    #: A point is left out if, in one of these mappings, it has one of the labels for every name (an axis or `seed`).
    exclude: tuple[Mapping[str, tuple[str, ...]], ...]
    #: Figures of the report, as written; already checked (`figures.py`).
    figures: tuple[Mapping[str, object], ...]


def read_experiment(experiment: Path | Mapping[str, object]) -> Experiment:
    """Return the experiment that a file, or a mapping like one, describes. Raises InputError."""
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
    return Experiment(
        source=source,
        title=_text(content, "title", source),
        description=_text(content, "description", source),
        base=base,
        axes=axes,
        seeds=seeds,
        repeats=_repeats(content, source),
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
                if any(_keys_overlap(key, set_before) for set_before in other.keys):
                    problem = f"sets {key!r}, which the axis {other.name!r} also sets"
                    raise InputError(source, at=f"axes.{name}", problem=problem, remedy="set each key by one axis only")
        axes.append(axis)
    return tuple(axes)


def _keys_overlap(one: str, other: str) -> bool:
    """Return whether two keys are equal, or one leads into the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


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
    if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
        seeds = list(range(seeds))
    whole = isinstance(seeds, list) and all(isinstance(seed, int) and not isinstance(seed, bool) for seed in seeds)
    if not isinstance(seeds, list) or not seeds or not whole or len(dict.fromkeys(seeds)) < len(seeds):
        raise InputError(source, at="seeds", problem=f"{seeds!r} is not a list of different seeds", remedy=_SEEDS)
    return tuple(int(seed) for seed in seeds)


_SEEDS = "a count, such as 10 (from 0 to 9), a list of whole numbers, or {from: 1, to: 10}"


def _repeats(content: Mapping[str, object], source: Path) -> int:
    repeats = content.get("repeats", 1)
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise InputError(source, at="repeats", problem=f"{repeats!r} is not a number of times", remedy="1 or more")
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
        for name, wanted in labels.items():
            check_names(wanted, labels_by_name[name], source, f"{at}.{name}", f"a value of {name}")
        if not labels:
            raise InputError(source, at=at, problem="would leave out every run", remedy="name an axis and its values")
        rules.append(labels)
    return tuple(rules)


def _labels(value: object) -> tuple[str, ...]:
    return tuple(label_of(entry) for entry in value) if isinstance(value, list | tuple) else (label_of(value),)


def _mapping(content: Mapping[str, object], word: str, source: Path) -> dict[str, object]:
    mapping = content.get(word) or {}
    if not isinstance(mapping, Mapping):
        raise InputError(source, at=word, problem="is not a mapping", remedy=f"write {word}: and its keys below it")
    return {str(key): value for key, value in mapping.items()}


def _mappings(content: Mapping[str, object], word: str, source: Path) -> list[dict[str, object]]:
    mappings = content.get(word) or []
    if not isinstance(mappings, list | tuple) or not all(isinstance(one, Mapping) for one in mappings):
        raise InputError(source, at=word, problem="is not a list of mappings", remedy="begin each one with '- '")
    return [{str(key): value for key, value in one.items()} for one in mappings]


def _text(content: Mapping[str, object], word: str, source: Path) -> str:
    text = content.get(word) or ""
    if not isinstance(text, str):
        raise InputError(source, at=word, problem=f"{text!r} is not text", remedy=f'write {word}: "…"')
    return text.strip()
