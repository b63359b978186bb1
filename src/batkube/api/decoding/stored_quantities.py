"""The text of quantities after a round trip through the server.

Kubernetes keeps the text of a quantity that its parser considers canonical, and formats all others again: `100m` stays,
`1000m` becomes `1`, and, by accident, `1.500` and `1e3` stay (apimachinery/pkg/api/resource/quantity.go,
ParseQuantity). Clients compare texts, so we do the same. `kernel.quantities` has the values of quantities.
"""

from __future__ import annotations

import re

from batkube.kernel.memo import memoized
from batkube.kernel.quantities import parse_quantity

_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMERIC = "unable to parse numeric part of quantity"
_SUFFIX = "unable to parse quantity's suffix"

#: The parts are unambiguous, so that matching a long invalid text does not backtrack exponentially.
_PARTS = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?((?:[eEinumkKMGTP]+[-+]?|[-+])[0-9]*)?", re.ASCII)
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
#: This many decimal digits fit into an int64.
_DIGITS = 18


class InvalidQuantity(ValueError):
    """The text is not a quantity; the message is kube-apiserver's."""


@memoized(4096)  # pods of one workload repeat a few texts
def stored_quantity(text: str) -> str:
    """Return the quantity `text` as the server prints it after parsing; raises InvalidQuantity."""
    match = _PARTS.fullmatch(text) if text else None
    if match is None:
        raise InvalidQuantity(_FORMAT)
    whole, fraction, suffix = match[1].lstrip("0") or "0", match[2] or "", match[3] or ""
    if suffix in _POWERS_OF_TWO:
        canonical = _looks_canonical_binary(whole, fraction, _POWERS_OF_TWO[suffix])
    else:
        canonical = _looks_canonical_decimal(whole, fraction, _power_of_ten(suffix))
    if canonical:
        return text
    try:
        # Kubernetes parses a quantity without digits, such as "m" or "+", as zero.
        return str(parse_quantity(text if match[1] or fraction or "0" in text else "0"))
    except ValueError:
        raise InvalidQuantity(_NUMERIC) from None


def _power_of_ten(suffix: str) -> int:
    power = _POWERS_OF_TEN.get(suffix)
    if power is not None:
        return power
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1]) > _DIGITS:
        raise InvalidQuantity(_SUFFIX)
    return int(match[1])


def _looks_canonical_decimal(whole: str, fraction: str, power: int) -> bool:
    digits = whole + fraction
    scale = power - len(fraction)
    return (
        len(digits) <= _DIGITS
        and scale >= -9
        and scale % 3 == 0
        and not digits.endswith("000")
        and not digits.startswith("0")
    )


def _looks_canonical_binary(whole: str, fraction: str, power: int) -> bool:
    few_digits = 15 - len(whole) - int(power * 3 / 10) - 1 >= 0
    return few_digits and not fraction and int(whole) & 7 != 0
