"""Axes: the parameters that vary in an experiment, and their values.

A value has a label, which tables and figures show, and settings: the keys of a scenario that it sets. A plain value
sets one key: the `key` of the axis, or else the one that the axis is named after. A labelled value may set several
keys, for example a workload and its platform. A dot leads into a mapping: `scheduler-args.threshold`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from batkube.experiments.description.ranges import RANGE_KEYS, expand_range
from batkube.kernel.errors import InputError
from batkube.scenarios.keys import KEYS
from batkube.text.suggestions import check_names, suggestion

#: Keys of an axis that is not just a list or a mapping of labels.
_AXIS_KEYS = ("key", "values", *RANGE_KEYS)


@dataclass(frozen=True, slots=True)
class AxisValue:
    """One value of an axis."""

    label: str
    #: The keys of a scenario that it sets; dots lead into mappings.
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter that varies, with at least one value; labels are unique."""

    name: str
    values: tuple[AxisValue, ...]

    @property
    def labels(self) -> list[str]:
        """The labels in order."""
        return [value.label for value in self.values]

    @property
    def keys(self) -> list[str]:
        """The keys of a scenario that any of the values sets, each once."""
        return list(dict.fromkeys(key for value in self.values for key in value.settings))


class AxisReader:
    """Reads one axis of an experiment file."""

    def __init__(self, name: str, source: Path) -> None:
        self._name = name
        self._source = source
        self._at = f"axes.{name}"
        #: The key that plain values set.
        self._key = name

    def read(self, content: object) -> Axis:
        """Return the axis. Raises InputError."""
        if isinstance(content, Mapping) and any(key in content for key in _AXIS_KEYS):
            check_names(content, _AXIS_KEYS, self._source, self._at, "a key of an axis")
            self._key = str(content.get("key", self._name))
            settings = {key: value for key, value in content.items() if key != "key"}
            if "values" in settings and len(settings) > 1:
                raise self._error("has both 'values' and a range", "put the range into the list of values")
            content = settings.get("values", [settings])
        values = list(self._values(content))
        if not values:
            raise self._error("has no values", "write a list, labels, or from, to and step")
        labels = [value.label for value in values]
        for label, count in Counter(labels).items():
            if count > 1:
                raise self._error(f"has the value {label!r} twice", "choose a different label for each value")
        return Axis(self._name, tuple(values))

    def _values(self, content: object) -> Iterator[AxisValue]:
        if isinstance(content, Mapping):
            for label, settings in content.items():
                yield self._labelled_value(label_of(label), settings)
            return
        if not isinstance(content, list | tuple):
            raise self._error(f"{content!r} is not a list of values", f"write [{content}]")
        for entry in content:
            if not isinstance(entry, Mapping):
                yield self._plain_value(label_of(entry), entry)
            elif any(key in entry for key in RANGE_KEYS):
                yield from self._range(entry)
            else:
                yield from self._values(entry)

    def _range(self, content: Mapping[str, object]) -> Iterator[AxisValue]:
        check_names(content, RANGE_KEYS, self._source, self._at, "a key of a range")
        try:
            values = expand_range(content)
        except ValueError as error:
            raise self._error(str(error), "such as {from: 0ms, to: 50ms, step: 5ms}") from error
        for value in values:
            yield self._plain_value(label_of(value), value)

    def _labelled_value(self, label: str, settings: object) -> AxisValue:
        if not isinstance(settings, Mapping):
            return self._plain_value(label, settings)
        for key in settings:
            self._check_key(str(key), f"{self._at}.{label}.{key}")
        return AxisValue(label, {str(key): value for key, value in settings.items()})

    def _plain_value(self, label: str, value: object) -> AxisValue:
        self._check_key(self._key, f"{self._at}.key" if self._key != self._name else self._at)
        return AxisValue(label, {self._key: value})

    def _check_key(self, key: str, at: str) -> None:
        if key == "seed":
            raise InputError(self._source, at=at, problem="seeds are not an axis", remedy="write seeds: 10, or a list")
        if key.split(".")[0] not in KEYS:
            hint = suggestion(key.split(".")[0], KEYS)
            advice = "" if key != self._name else "; name the axis after one, or add 'key'"
            raise InputError(self._source, at=at, problem=f"{key!r} is not a key of a scenario{advice}", remedy=hint)

    def _error(self, problem: str, remedy: str) -> InputError:
        return InputError(self._source, at=self._at, problem=problem, remedy=remedy)


def label_of(value: object) -> str:
    """Return the label of a plain value."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "+".join(label_of(entry) for entry in value)
    return str(value)
