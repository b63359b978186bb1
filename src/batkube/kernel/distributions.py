"""Named probability distributions: `uniform:10,20` or `{"name": "uniform", "low": 10, "high": 20}`.

One grammar serves all options that accept a random value (run times, sizes, arrivals, latencies). A distribution has no
state and no generator: `draw` takes the random stream, so the same stream gives the same values. Values are floats
without a unit; the caller defines the unit and clips impossible values, such as a negative latency of a `normal`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_Draw = Callable[[random.Random, tuple[float, ...]], float]
_Check = Callable[[tuple[float, ...]], str | None]


@dataclass(frozen=True, slots=True)
class _Family:
    """A kind of distribution: its parameters in order, how to draw a value, and how to validate the parameters."""

    parameters: tuple[str, ...]
    draw: _Draw
    check: _Check


@dataclass(frozen=True, slots=True)
class Distribution:
    """A family and its parameters. Created by `parse_distribution`."""

    name: str
    parameters: tuple[float, ...]

    def draw(self, rng: random.Random) -> float:
        """Return one value from the stream `rng`."""
        return _FAMILIES[self.name].draw(rng, self.parameters)

    def describe(self) -> str:
        """Return the text form, which `parse_distribution` accepts."""
        return f"{self.name}:" + ",".join(repr(value).removesuffix(".0") for value in self.parameters)


def parse_distribution(spec: str | Mapping[str, object] | int | float | Distribution) -> Distribution:
    """Parse a distribution. Raises ValueError with the problem and the allowed forms.

    A bare number is a constant. A text is `name:parameter,parameter`. A mapping has `name` and either the parameters by
    name or a list `values`.
    """
    if isinstance(spec, Distribution):
        return spec
    if isinstance(spec, bool):
        raise ValueError(f"{spec} is not a distribution; {_USAGE}")
    if isinstance(spec, int | float):
        return _validated("constant", (_number(spec, "constant"),))
    if isinstance(spec, Mapping):
        return _from_mapping(spec)
    if not isinstance(spec, str):
        raise ValueError(f"{spec!r} is not a distribution; {_USAGE}")
    return _from_text(spec)


def _from_text(text: str) -> Distribution:
    name, colon, rest = text.strip().partition(":")
    if not colon:
        try:
            return _validated("constant", (_number(name, "constant"),))
        except ValueError:
            if name.strip() not in _FAMILIES:
                raise ValueError(f"{text!r} is not a distribution; {_USAGE}") from None
    name = name.strip()
    values = [part for part in rest.split(",") if part.strip()]
    return _validated(name, tuple(_number(value, name) for value in values))


def _from_mapping(spec: Mapping[str, object]) -> Distribution:
    name = spec.get("name", spec.get("distribution"))
    if not isinstance(name, str):
        raise ValueError(f"a distribution needs a name; {_USAGE}")
    parameters = {key: value for key, value in spec.items() if key not in ("name", "distribution")}
    values = parameters.pop("values", None)
    if values is not None:
        if parameters or not isinstance(values, list | tuple):
            raise ValueError(f"{name}: use either a list `values` or the parameters by name")
        return _validated(name, tuple(_number(value, name) for value in values))
    expected = _family(name).parameters
    unknown = [key for key in parameters if key not in expected]
    missing = [key for key in expected if key not in parameters]
    if unknown or missing:
        raise ValueError(f"{name} takes {', '.join(expected)}, not {', '.join(map(str, parameters)) or 'nothing'}")
    return _validated(name, tuple(_number(parameters[key], name) for key in expected))


def _number(value: object, name: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name}: {value!r} is not a finite number")
    return number


def _family(name: str) -> _Family:
    family = _FAMILIES.get(name)
    if family is None:
        raise ValueError(f"{name!r} is not a distribution; {_USAGE}")
    return family


def _validated(name: str, parameters: tuple[float, ...]) -> Distribution:
    family = _family(name)
    if name not in _VARIADIC and len(parameters) != len(family.parameters):
        expected = ",".join(family.parameters)
        raise ValueError(f"{name} takes {len(family.parameters)} parameters ({name}:{expected}), not {len(parameters)}")
    problem = family.check(parameters)
    if problem:
        raise ValueError(f"{name}: {problem}")
    return Distribution(name, parameters)


def _always_valid(parameters: tuple[float, ...]) -> str | None:
    return None


def _check_ordered(parameters: tuple[float, ...]) -> str | None:
    return "low is larger than high" if parameters[0] > parameters[1] else None


def _check_positive(parameters: tuple[float, ...]) -> str | None:
    return None if all(value > 0 for value in parameters) else "every parameter must be larger than 0"


def _check_normal(parameters: tuple[float, ...]) -> str | None:
    return "the standard deviation is negative" if parameters[1] < 0 else None


def _check_lognormal(parameters: tuple[float, ...]) -> str | None:
    return None if parameters[0] > 0 and parameters[1] >= 0 else "median must be larger than 0, sigma at least 0"


def _check_not_empty(parameters: tuple[float, ...]) -> str | None:
    return None if parameters else "needs at least one value"


def _check_quantiles(parameters: tuple[float, ...]) -> str | None:
    if len(parameters) < 2:
        return "needs at least two quantiles, the smallest and the largest"
    rising = all(low <= high for low, high in itertools.pairwise(parameters))
    return None if rising else "the quantiles must not decrease"


def _interpolate(rng: random.Random, quantiles: tuple[float, ...]) -> float:
    place = rng.random() * (len(quantiles) - 1)
    below = int(place)
    return quantiles[below] + (quantiles[below + 1] - quantiles[below]) * (place - below)


#: Families that take any number of parameters.
_VARIADIC = ("choice", "empirical")

# The parameterisation of each name is part of the file formats: changing it changes results.
_FAMILIES: dict[str, _Family] = {
    "constant": _Family(("value",), lambda rng, p: p[0], _always_valid),
    "uniform": _Family(("low", "high"), lambda rng, p: rng.uniform(*p), _check_ordered),
    "exponential": _Family(("mean",), lambda rng, p: rng.expovariate(1 / p[0]), _check_positive),
    "normal": _Family(("mean", "sd"), lambda rng, p: rng.gauss(*p), _check_normal),
    # `median` is exp(mu): half of the draws are below it. `sigma` is the standard deviation of the logarithm.
    "lognormal": _Family(("median", "sigma"), lambda rng, p: p[0] * math.exp(rng.gauss(0.0, p[1])), _check_lognormal),
    # P(X > x) = exp(-(x / scale)^shape).
    "weibull": _Family(("shape", "scale"), lambda rng, p: rng.weibullvariate(p[1], p[0]), _check_positive),
    # Mean shape * scale.
    "gamma": _Family(("shape", "scale"), lambda rng, p: rng.gammavariate(p[0], p[1]), _check_positive),
    # Each value is equally likely; list a value twice to double its probability.
    "choice": _Family(("values",), lambda rng, p: p[rng.randrange(len(p))], _check_not_empty),
    # Quantiles at equal steps of probability, from the smallest value to the largest, interpolated linearly.
    "empirical": _Family(("values",), _interpolate, _check_quantiles),
}

_USAGE = "write a number or one of " + ", ".join(
    f"{name}:{','.join(family.parameters) if name not in _VARIADIC else 'a,b,c,…'}"
    for name, family in _FAMILIES.items()
)
