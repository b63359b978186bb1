"""The `figures:` section of an experiment file, read and checked.

An entry specifies which column to draw against which axis, with a line or bar per value of another axis, panels for the
values of a third, and data from other sources (a theoretical value, published data). Errors are found before anything
runs. docs/reference/figures.md has the keys.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from batkube.experiments.description.columns import SEED, number_columns, reserved_columns
from batkube.experiments.description.conditions import Condition, as_number, read_conditions
from batkube.kernel.errors import InputError
from batkube.outputs.job_statistics import UTILISATION_PREFIX
from batkube.outputs.measures.metric_columns import JOB_COLUMNS, column_of, job_column_of
from batkube.text.suggestions import check_names


class FigureKind(enum.StrEnum):
    """Kind of a figure."""

    LINE = "line"
    BAR = "bar"
    BOX = "box"
    SCATTER = "scatter"
    CDF = "cdf"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A reference value that is not from a run, such as one from theory."""

    label: str
    value: float
    #: Its column; empty if the figure has only one.
    y: str = ""
    #: The facets it is drawn in; empty for all of them.
    facets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedData:
    """Published data to draw next to ours: a CSV file with a row per run, or a jobs.csv per run."""

    label: str
    file: str = ""
    #: A glob of jobs.csv files; each is one run, and its columns are those of schedule.csv.
    jobs: str = ""
    x: str = ""
    #: Their column for each of ours.
    y: Mapping[str, str] = field(default_factory=dict)
    #: Factors from their units to ours.
    x_factor: float = 1.0
    y_factor: float = 1.0
    where: tuple[Condition, ...] = ()
    facets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """One figure of an experiment file."""

    title: str
    kind: FigureKind
    x: str
    y: tuple[str, ...]
    by: str = ""
    facet: str = ""
    caption: str = ""
    log_x: bool = False
    log_y: bool = False
    where: tuple[Condition, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    published: tuple[PublishedData, ...] = ()


#: The keys of an entry, and of the mappings inside it.
KEYS = ("title", "kind", "x", "y", "by", "facet", "caption", "log", "where", "baselines", "published")
_BASELINE_KEYS = ("label", "value", "y", "facet")
_PUBLISHED_KEYS = ("file", "jobs", "x", "y", "label", "where", "facet", "x-unit", "y-unit")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "%": 0.01}


def read_figures(content: object, source: Path, axes: Mapping[str, Sequence[str]]) -> list[FigureSpec]:
    """Return the figures of `content`, a list of entries. Raises InputError.

    `axes` are the experiment's, with their labels. A figure may use them and the columns of the results.
    """
    if content is None:
        return []
    if not isinstance(content, list | tuple):
        raise InputError(source, at="figures", problem="is not a list of figures", remedy="begin each with `- title:`")
    return [_figure(entry, source, f"figures[{number}]", axes) for number, entry in enumerate(content, start=1)]


def _figure(entry: object, source: Path, at: str, axes: Mapping[str, Sequence[str]]) -> FigureSpec:
    values = _mapping(entry, KEYS, source, at)
    if values.get("kind") == FigureKind.CDF:
        return _distribution(values, source, at, axes)
    x, y = _text(values, "x", source, at), _texts(values.get("y"), source, f"{at}.y")
    by, facet = _text(values, "by", source, at), _text(values, "facet", source, at)
    if not x or not y:
        raise InputError(source, at=at, problem=f"has no {'x' if not x else 'y'}", remedy="name an axis or a column")
    check_names([x], (*axes, SEED, *number_columns()), source, f"{at}.x", "an axis or a column of numbers")
    measured = [name for name in y if not name.startswith(UTILISATION_PREFIX)]  # of any resource
    check_names(measured, number_columns(), source, f"{at}.y", "a column of numbers")
    check_names([by] if by else [], axes, source, f"{at}.by", "an axis of this experiment")
    check_names([facet] if facet else [], axes, source, f"{at}.facet", "an axis of this experiment")
    where = read_conditions(values.get("where"), source, f"{at}.where")
    columns = (*axes, *reserved_columns())
    check_names(
        (condition.column for condition in where), columns, source, f"{at}.where", "an axis or a column of the results"
    )
    log = _text(values, "log", source, at)
    check_names([log] if log else [], ("x", "y", "xy"), source, f"{at}.log", "a choice of logarithmic axes")
    return FigureSpec(
        title=_text(values, "title", source, at) or default_title(x, y),
        kind=_kind(values, source, at, x in axes),
        x=x,
        y=y,
        by=by,
        facet=facet,
        caption=_text(values, "caption", source, at),
        log_x="x" in log,
        log_y="y" in log,
        where=where,
        baselines=_baselines(values.get("baselines"), y, axes.get(facet, ()), source, f"{at}.baselines"),
        published=tuple(
            _published_data(entry, y, axes.get(facet, ()), source, f"{at}.published{place}")
            for entry, place in _entries(values.get("published"))
        ),
    )


def _distribution(values: Mapping[str, object], source: Path, at: str, axes: Mapping[str, Sequence[str]]) -> FigureSpec:
    """Return a figure of the distribution of a per-job number."""
    for key in ("x", "log", "baselines", "published"):
        if key in values:
            problem = "does not apply to a cdf, whose x axis is the number itself"
            raise InputError(source, at=f"{at}.{key}", problem=problem, remedy="remove it")
    y = _texts(values.get("y"), source, f"{at}.y") or ("waiting_time",)
    check_names(y, JOB_COLUMNS, source, f"{at}.y", "a number that each job has")
    if len(y) > 1:
        raise InputError(source, at=f"{at}.y", problem="a cdf shows one number", remedy="write a figure for each")
    by, facet = _text(values, "by", source, at), _text(values, "facet", source, at)
    for key, axis in (("by", by), ("facet", facet)):
        check_names([axis] if axis else [], axes, source, f"{at}.{key}", "an axis of this experiment")
    where = read_conditions(values.get("where"), source, f"{at}.where")
    columns = (*axes, *reserved_columns())
    check_names(
        (condition.column for condition in where), columns, source, f"{at}.where", "an axis or a column of the results"
    )
    title, caption = _text(values, "title", source, at), _text(values, "caption", source, at)
    return FigureSpec(title or distribution_title(y[0]), FigureKind.CDF, "", y, by, facet, caption, where=where)


def distribution_title(name: str) -> str:
    """Return the default title of a figure of a distribution."""
    return f"Distribution of {job_column_of(name).label}"


def default_title(x: str, y: Sequence[str]) -> str:
    """Return the default title of a figure."""
    title = f"{' and '.join(column_of(name).label for name in y)} by {column_of(x).label}"
    return title[0].upper() + title[1:]


def _kind(values: Mapping[str, object], source: Path, at: str, x_is_axis: bool) -> FigureKind:
    kind = _text(values, "kind", source, at) or (FigureKind.LINE if x_is_axis else FigureKind.SCATTER)
    check_names([kind], list(FigureKind), source, f"{at}.kind", "a kind of figure")
    return FigureKind(kind)


def _baselines(content: object, y: Sequence[str], panels: Sequence[str], source: Path, at: str) -> tuple[Baseline, ...]:
    """Return `{theory: 2210}` or a list of `{label, value, y, facet}`."""
    if isinstance(content, Mapping):
        content = [{"label": label, "value": value} for label, value in content.items()]
    entries = [
        (_mapping(entry, _BASELINE_KEYS, source, f"{at}{place}"), f"{at}{place}") for entry, place in _entries(content)
    ]
    baselines = []
    for values, place in entries:
        value = as_number(values.get("value"))
        if value is None:
            raise InputError(source, at=place, problem=f"{values.get('value')!r} is not a number")
        column = _column_to_draw(values, y, source, place)
        facets = _facets(values, panels, source, place)
        baselines.append(Baseline(_text(values, "label", source, place) or "baseline", value, column, facets))
    return tuple(baselines)


def _column_to_draw(values: Mapping[str, object], y: Sequence[str], source: Path, at: str) -> str:
    column = _text(values, "y", source, at)
    if column in y or (not column and len(y) == 1):
        return column or y[0]
    raise InputError(
        source,
        at=at,
        problem=f"{column!r} is not drawn in this figure" if column else "does not name the y column of its value",
        remedy=f"y: {' or '.join(y)}",
    )


def _facets(values: Mapping[str, object], panels: Sequence[str], source: Path, at: str) -> tuple[str, ...]:
    """Return the panels in which an entry is drawn; `panels` are those of the figure."""
    facets = _texts(values.get("facet"), source, f"{at}.facet")
    check_names(facets, panels, source, f"{at}.facet", "a panel of this figure")
    return facets


def _published_data(entry: object, y: Sequence[str], panels: Sequence[str], source: Path, at: str) -> PublishedData:
    values = _mapping(entry, _PUBLISHED_KEYS, source, at)
    file, jobs = _text(values, "file", source, at), _text(values, "jobs", source, at)
    if bool(file) == bool(jobs):
        raise InputError(
            source, at=at, problem="needs either a file or jobs", remedy="file: data.csv, or jobs: runs/*_jobs.csv"
        )
    published = values.get("y")
    if isinstance(published, Mapping):
        columns = {_column_to_draw({"y": own}, y, source, f"{at}.y"): str(name) for own, name in published.items()}
    elif published is None:
        columns = {name: name for name in y}
    else:
        columns = {_column_to_draw({}, y, source, f"{at}.y"): str(published)}
    return PublishedData(
        label=_text(values, "label", source, at) or "published",
        file=file,
        jobs=jobs,
        x=_text(values, "x", source, at),
        y=columns,
        x_factor=_factor(values, "x-unit", source, at),
        y_factor=_factor(values, "y-unit", source, at),
        where=read_conditions(values.get("where"), source, f"{at}.where"),
        facets=_facets(values, panels, source, at),
    )


def _factor(values: Mapping[str, object], key: str, source: Path, at: str) -> float:
    unit = _text(values, key, source, at)
    check_names([unit] if unit else [], _UNITS, source, f"{at}.{key}", "a unit")
    return _UNITS[unit] if unit else 1.0


def _entries(content: object) -> list[tuple[object, str]]:
    """Return each entry with its place in error messages; a single mapping stands for a list of one."""
    if content is None:
        return []
    return (
        [(entry, f"[{number}]") for number, entry in enumerate(content, start=1)]
        if isinstance(content, list)
        else [(content, "")]
    )


def _mapping(entry: object, keys: Sequence[str], source: Path, at: str) -> Mapping[str, object]:
    if not isinstance(entry, Mapping):
        raise InputError(source, at=at, problem="is not a mapping", remedy=f"keys: {', '.join(keys)}")
    check_names(entry, keys, source, at, "a key here")
    return entry


def _text(values: Mapping[str, object], key: str, source: Path, at: str) -> str:
    value = values.get(key)
    if isinstance(value, list | Mapping):
        raise InputError(source, at=f"{at}.{key}", problem="is not a string")
    return "" if value is None else str(value)


def _texts(content: object, source: Path, at: str) -> tuple[str, ...]:
    if isinstance(content, Mapping) or (
        isinstance(content, list) and any(isinstance(item, list | dict) for item in content)
    ):
        raise InputError(source, at=at, problem="is neither a string nor a list of strings")
    items = content if isinstance(content, list) else [] if content is None else [content]
    return tuple(dict.fromkeys(str(item) for item in items))
