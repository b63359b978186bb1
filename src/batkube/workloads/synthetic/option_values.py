"""Parse option values: times, factors, amounts and distributions. Errors name the option."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, duration
from batkube.kernel.quantities import parse_amount

#: Families whose parameters are the values. Other families can draw invalid values, which are clipped.
_EXPLICIT_FAMILIES = ("constant", "choice")
#: Recorded utilisation can exceed 1 a little; a larger number is taken for a percentage.
_UTILISATION_MAX = 2.0


def duration_option(option: str, text: str) -> Duration:
    """Parse a duration."""
    try:
        return duration(text)
    except ValueError as error:
        raise InputError(option, problem=str(error)) from None


def factor_option(option: str, text: str) -> Fraction:
    """Parse a number, exactly."""
    try:
        exact = Decimal(text)
        if exact.is_finite() and abs(exact.adjusted()) < 100:
            return Fraction(exact)
    except InvalidOperation:
        pass
    raise InputError(option, problem=f"{text!r} is not a number")


def quantity_option(option: str, resource: str, text: str) -> int:
    """Parse a Kubernetes quantity of `resource`."""
    try:
        return parse_amount(resource, text)
    except ValueError as error:
        raise InputError(option, problem=str(error)) from None


def distribution_option(option: str, text: str, minimum: float) -> Distribution:
    """Parse a distribution. Explicit values (constant, choice) must be at least `minimum`."""
    try:
        distribution = parse_distribution(text)
    except ValueError as error:
        raise InputError(option, problem=str(error)) from None
    if distribution.name in _EXPLICIT_FAMILIES and min(distribution.parameters) < minimum:
        problem = f"{min(distribution.parameters):g} is too small"
        raise InputError(option, problem=problem, remedy=f"use values of at least {minimum:g}")
    return distribution


def utilisation_option(option: str, share: float) -> float:
    """Return a share of the machine, or raise InputError if it looks like a percentage."""
    if 0 <= share <= _UTILISATION_MAX:
        return share
    percent = f"; did you mean {share / 100:g}?" if 0 < share <= 100 else ""
    raise InputError(option, problem=f"is {share:g}; utilisation is between 0 and 1{percent}")
