"""Parses time modes with their parameters: `paced:timeout=50ms,max-step=1000s`, or a mapping in a scenario.

Both forms are equivalent. `exact` has no parameters, `realtime` has `speed`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from batkube.kernel.instants import Duration, duration, format_seconds
from batkube.timing.paced import PUBLISHED, Pacing


class TimeMode(enum.StrEnum):
    """How virtual time moves."""

    EXACT = "exact"  # to the next event, as soon as all programs are idle
    PACED = "paced"  # by the rules of the 2020 prototype: wait for a while, then jump
    REALTIME = "realtime"  # with real time


@dataclass(frozen=True, slots=True)
class TimeRules:
    """A time mode with its parameters."""

    mode: TimeMode = TimeMode.EXACT
    #: The parameters of `paced`.
    pacing: Pacing = PUBLISHED
    #: The parameter of `realtime`: the number of simulated seconds per real second.
    speed: float = 1.0

    @property
    def enforces_admission(self) -> bool:
        """Whether nodes reject pods that do not fit."""
        return self.mode is not TimeMode.PACED or self.pacing.admission

    def describe(self) -> str | dict[str, object]:
        """Return the rules in the form of a scenario file."""
        if self.mode is TimeMode.PACED:
            rules = {entry.name.replace("_", "-"): getattr(self.pacing, entry.name) for entry in fields(Pacing)}
            return {"mode": self.mode.value, **{key: _format_value(key, value) for key, value in rules.items()}}
        if self.mode is TimeMode.REALTIME:
            return {"mode": self.mode.value, "speed": self.speed}
        return self.mode.value


EXACT = TimeRules()

_MAY_BE_ZERO = ("timeout", "min-delay", "crash-timeout")
_LENGTHS = (*_MAY_BE_ZERO, "base-step", "max-step")
_SWITCHES = ("fast-forward", "admission", "replay")
_FACTORS = ("multiplier", "speed")
_KEYS = {
    TimeMode.EXACT: (),
    TimeMode.PACED: (*_LENGTHS, "multiplier", *_SWITCHES),
    TimeMode.REALTIME: ("speed",),
}


class InvalidTimeRules(ValueError):
    """An invalid time mode, with a remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


def parse_time(content: object) -> TimeRules:
    """Parse a text, or a mapping with a `mode`; raise InvalidTimeRules."""
    values = dict(content) if isinstance(content, Mapping) else _parse_text(str(content))
    name = values.pop("mode", None)
    if name is None:
        raise InvalidTimeRules("has no mode", f"add mode: one of {', '.join(TimeMode)}")
    try:
        mode = TimeMode(str(name))
    except ValueError:
        raise InvalidTimeRules(f"{name!r} is not a time mode", f"one of {', '.join(TimeMode)}") from None
    for key in values:
        if key not in _KEYS[mode]:
            remedy = f"one of {', '.join(_KEYS[mode])}" if _KEYS[mode] else f"{mode} has no parameters"
            raise InvalidTimeRules(f"{key!r} is not a parameter of {mode}", remedy)
    parameters = {key.replace("-", "_"): _READERS[key](key, value) for key, value in values.items()}
    return (
        TimeRules(mode, replace(PUBLISHED, **parameters))
        if mode is TimeMode.PACED
        else replace(TimeRules(mode), **parameters)
    )


def _parse_text(text: str) -> dict[str, object]:
    mode, colon, rest = text.partition(":")
    values: dict[str, object] = {"mode": mode.strip()}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidTimeRules(f"{part!r} is not of the form name=value", "write paced:timeout=50ms,max-step=1000s")
        values[key.strip()] = value.strip()
    return values


def _parse_length(key: str, value: object) -> Duration:
    try:
        length = duration(str(value))
    except ValueError as error:
        raise InvalidTimeRules(f"{key}: {error}", f"write {key} as 20ms or 1.5s") from None
    if length == 0 and key not in _MAY_BE_ZERO:
        raise InvalidTimeRules(f"{key} is 0, and time would stand still", "use a duration such as 100ms")
    return length


def _parse_switch(key: str, value: object) -> bool:
    setting = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}.get(str(value).lower())
    if setting is None:
        raise InvalidTimeRules(f"{key}: {value!r} is neither on nor off", f"write {key}=on or {key}=off")
    return setting


def _parse_factor(key: str, value: object) -> float:
    least = 1.0 if key == "multiplier" else 0.0
    try:
        factor = float(str(value))
    except ValueError:
        raise InvalidTimeRules(f"{key}: {value!r} is not a number", f"write {key}=2") from None
    if not least <= factor < 1e9 or factor == 0:
        raise InvalidTimeRules(f"{key} cannot be {factor:g}", "1 or more" if least else "more than 0")
    return factor


_READERS: dict[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(_LENGTHS, _parse_length),
    **dict.fromkeys(_SWITCHES, _parse_switch),
    **dict.fromkeys(_FACTORS, _parse_factor),
}


def _format_value(key: str, value: object) -> object:
    return format_seconds(int(str(value))) if key in _LENGTHS else value
