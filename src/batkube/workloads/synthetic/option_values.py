"""Options that a person writes as text: times, factors, amounts, distributions; a wrong one names its option."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, duration
from batkube.kernel.quantities import parse_amount

#: Families whose parameters are the values drawn; the others may draw what cannot be, which is clipped.
_EXPLICIT_FAMILIES = ("constant", "choice")
#: A machine may be a little over-used on record; more than this is a percentage.
_UTILISATION_MAX = 2.0


def duration_option(option: str, text: str) -> Duration:
    """Return the time that `text` is."""
    try:
        return duration(text)
    except ValueError as error:
        raise InputError(option, problem=str(error)) from None


def factor_option(option: str, text: str) -> Fraction:
    """Return the number that `text` is, exactly."""
    try:
        exact = Decimal(text)
        if exact.is_finite() and abs(exact.adjusted()) < 100:
            return Fraction(exact)
    except InvalidOperation:
        pass
    raise InputError(option, problem=f"{text!r} is not a number")


def quantity_option(option: str, resource: str, text: str) -> int:
    """Return how much of `resource` the Kubernetes quantity `text` is."""
    try:
        return parse_amount(resource, text)
    except ValueError as error:
        raise InputError(option, problem=str(error)) from None


def distribution_option(option: str, text: str, least: float) -> Distribution:
    """Return the distribution that `text` describes; values that it writes out must not be below `least`."""
    try:
        values = parse_distribution(text)
    except ValueError as error:
        raise InputError(option, problem=str(error)) from None
    if values.name in _EXPLICIT_FAMILIES and min(values.parameters) < least:
        raise InputError(option, problem=f"{min(values.parameters):g} is too little", remedy=f"give at least {least:g}")
    return values


def utilisation_option(option: str, share: float) -> float:
    """Return `share` of a machine; refuse what must be a percentage."""
    if 0 <= share <= _UTILISATION_MAX:
        return share
    percent = f"; did you mean {share / 100:g}?" if 0 < share <= 100 else ""
    raise InputError(option, problem=f"is {share:g}; utilisation is between 0 and 1{percent}")
