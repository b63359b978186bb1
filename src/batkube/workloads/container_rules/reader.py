"""Read a rules file: a list of rules, each with patterns for containers and the behaviour of those that match."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from batkube.files.yaml_reader import read_yaml
from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, duration
from batkube.kernel.quantities import CPU, MEMORY
from batkube.workloads import fields as require
from batkube.workloads.container_rules.rules import FOREVER, ContainerRule
from batkube.workloads.container_rules.usage_curves import UsageCurve
from batkube.workloads.fields import Place

_PATTERNS = ("image", "container", "namespace", "pod")
_LOAD = "cpu-load"
_AFTER, _UNTIL = "healthy-after", "healthy-until"
_BEHAVIOUR_KEYS = ("duration", "exit-code", CPU, _LOAD, MEMORY, "pull", _AFTER, _UNTIL)
_MATCH_KEYS = (*_PATTERNS, "labels", "command")
_KEYS = (*_MATCH_KEYS, *_BEHAVIOUR_KEYS)
#: The exit codes of POSIX.
_EXIT_CODES = range(256)


def read_rules(path: Path) -> tuple[ContainerRule, ...]:
    """Return the rules of a file, in its order."""
    place = Place(path)
    content = require.array(place, read_yaml(path))
    if not content:
        place.reject("contains no rules", "write at least one rule, or omit the file")
    return tuple(_rule(place[number], entry) for number, entry in enumerate(content))


def _rule(place: Place, entry: object) -> ContainerRule:
    keys = require.mapping(place, entry)
    for key in keys:
        if key not in _KEYS:
            (place / str(key)).reject("is not a key of a rule", f"the keys are {', '.join(_KEYS)}")
    if not keys.keys() & set(_MATCH_KEYS):
        place.reject(
            "matches no container: it has no pattern", f'add one of {", ".join(_MATCH_KEYS)}; image: "*" matches all'
        )
    if not keys.keys() & set(_BEHAVIOUR_KEYS):
        place.reject("specifies no behaviour", f"add one of {', '.join(_BEHAVIOUR_KEYS)}")
    if CPU in keys and _LOAD in keys:
        (place / _LOAD).reject(f"conflicts with {CPU}: both specify CPU usage", "remove one of them")
    after, until = (_duration(place / key, keys[key]) if key in keys else None for key in (_AFTER, _UNTIL))
    fixed = [age.parameters[0] for age in (after, until) if isinstance(age, Distribution) and age.name == "constant"]
    if len(fixed) == 2 and fixed[1] <= fixed[0]:
        remedy = f"write a later time; if no probe may ever succeed, write {_AFTER}: {FOREVER}"
        (place / _UNTIL).reject(f"is not later than {_AFTER}", remedy)
    return ContainerRule(
        place=f"{place.path}: {place.at}",
        **{key: require.string(place / key, keys[key]) for key in _PATTERNS if key in keys},
        labels=_labels(place / "labels", keys.get("labels", {})),
        command=require.string(place / "command", keys["command"]) if "command" in keys else None,
        duration=_duration(place / "duration", keys["duration"]) if "duration" in keys else None,
        exit_code=_exit_code(place / "exit-code", keys["exit-code"]) if "exit-code" in keys else None,
        cpu=_usage(place / CPU, CPU, keys[CPU]) if CPU in keys else None,
        memory=_usage(place / MEMORY, MEMORY, keys[MEMORY]) if MEMORY in keys else None,
        cpu_load=_curve(place / _LOAD, CPU, keys[_LOAD]) if _LOAD in keys else None,
        pull_fails=_pull_fails(place / "pull", keys["pull"]) if "pull" in keys else False,
        healthy_after=after,
        healthy_until=until,
    )


def _labels(place: Place, value: object) -> Mapping[str, str]:
    labels = require.mapping(place, value)
    return {key: require.string(place / key, text) for key, text in labels.items()}


def _duration(place: Place, value: object) -> Distribution | Literal["forever"]:
    """Return a fixed duration such as `10m`, or a distribution of seconds."""
    if value == FOREVER:
        return FOREVER
    if isinstance(value, str) and ":" not in value:
        return parse_distribution(_parse_duration(place, value) / NANOSECONDS_PER_SECOND)
    return _distribution(place, value)


def _parse_duration(place: Place, value: object) -> Duration:
    try:
        return duration(str(value))
    except ValueError as error:
        place.reject(str(error), f"or write {FOREVER}")


def _distribution(place: Place, value: object) -> Distribution:
    try:
        distribution = parse_distribution(value)  # type: ignore[arg-type]  # it checks the type
    except ValueError as error:
        place.reject(str(error))
    if distribution.name == "constant" and distribution.parameters[0] < 0:
        place.reject(f"is {distribution.parameters[0]:g}, which is negative")
    return distribution


def _exit_code(place: Place, value: object) -> Distribution:
    codes = _distribution(place, value)
    if codes.name not in ("constant", "choice") or any(code not in _EXIT_CODES for code in codes.parameters):
        place.reject(
            f"is {require.abbreviated(value)}, which is not an exit code from 0 to 255", "write 1, or choice:0,0,0,1"
        )
    return codes


def _pull_fails(place: Place, value: object) -> bool:
    if value not in ("fails", "works"):
        place.reject(f"is {require.abbreviated(value)}", "write `fails` (the image does not exist) or `works`")
    return value == "fails"


def _usage(place: Place, resource: str, value: object) -> UsageCurve | Distribution:
    """Return the usage: a quantity, a distribution of cores or bytes, or points `[age, quantity]`."""
    if isinstance(value, Mapping) or (isinstance(value, str) and ":" in value):
        return _distribution(place, value)
    return _curve(place, resource, value)


def _curve(place: Place, resource: str, value: object) -> UsageCurve:
    if not isinstance(value, list):
        return UsageCurve(((Duration(0), require.quantity(place, resource, value)),))
    points = tuple(_point(place[number], resource, point) for number, point in enumerate(value))
    ages = [age for age, _ in points]
    if not points or ages != sorted(ages):
        place.reject("needs points in order of age", "write, for example, [[0s, 100Mi], [10m, 2Gi]]")
    return UsageCurve(points)


def _point(place: Place, resource: str, value: object) -> tuple[Duration, int]:
    pair = require.array(place, value)
    if len(pair) != 2:
        place.reject(
            f"is {require.abbreviated(value)}, which is not an age and a quantity", "write, for example, [10m, 2Gi]"
        )
    return _parse_duration(place[0], pair[0]), require.quantity(place[1], resource, pair[1])
