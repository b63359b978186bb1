"""Kubernetes quantities, exactly, and the integer amounts that the simulator counts with.

A quantity is text such as `500m`, `1.5Gi` or `1e3`. Kubernetes (apimachinery, pkg/api/resource, type Quantity) stores
it as a fixed-point number with the *format* of its suffix, and prints it in canonical form: no precision lost, no
fraction, the largest suffix that allows both. Here the number is an integer of nano-units, the finest unit of
Kubernetes, so no binary float is involved. One difference: Kubernetes prints some texts unchanged that its parser takes
for canonical, such as `1.555`. Here every quantity is printed in the documented form, `1555m`.

Simulation code does not use `Quantity`. Like kube-scheduler it counts cpu in millicores and everything else in whole
units (Kubernetes: scheduler framework, type Resource). `parse_amount` and `format_amount` convert.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from batkube.kernel.memo import memoized
from batkube.kernel.numbers import parse_int

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
GPU = "nvidia.com/gpu"
#: A whole machine: the resource of jobs that request machines instead of cores and memory.
MACHINE = "batkube.io/machine"

_NANOS_PER_UNIT = 10**9
_NANOS_PER_MILLI = 10**6
#: The largest int64, the type of Kubernetes' own counters.
_MAX_INT64 = 2**63 - 1
#: Larger exponents, and numbers with more digits, cost time and memory to expand and mean nothing.
_MAX_EXPONENT = 300

_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_QUANTITY_TEXT = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?|\.(?P<only_fraction>[0-9]+))"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+)|(?P<decimal>[numkMGTPE]?))",
    re.ASCII,
)


class Format(enum.StrEnum):
    """The format of a suffix: a quantity is printed in the format in which it was written."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact number and its format. Equality compares values only: `1000m` equals `1`."""

    nanos: int
    format: Format = field(default=Format.DECIMAL_SI, compare=False)

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero, as Kubernetes' Quantity.Value."""
        return _divide_away_from_zero(self.nanos, _NANOS_PER_UNIT)

    @property
    def milli_value(self) -> int:
        """Thousandths, rounded away from zero, as Kubernetes' Quantity.MilliValue."""
        return _divide_away_from_zero(self.nanos, _NANOS_PER_MILLI)

    def __add__(self, other: Quantity) -> Quantity:
        # Kubernetes: Quantity.Add. Zero adopts the format of the other operand.
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __str__(self) -> str:
        if self.nanos == 0:
            return "0"
        units, rest = divmod(self.nanos, _NANOS_PER_UNIT)
        # Small or fractional binary quantities are printed with decimal suffixes, so that no precision is lost.
        # Kubernetes: Quantity.CanonicalizeBytes.
        if self.format is Format.BINARY_SI and rest == 0 and abs(units) >= 1024:
            return _binary_text(units)
        return _decimal_text(self.nanos, self.format)


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _binary_text(units: int) -> str:
    mantissa, power = units, 0
    while mantissa % 1024 == 0:
        mantissa //= 1024
        power += 1
    # Only sums exceed Ei. Kubernetes prints them in full, too.
    return f"{mantissa}{_BINARY_SUFFIXES[power]}" if power < len(_BINARY_SUFFIXES) else str(units)


def _decimal_text(nanos: int, form: Format) -> str:
    mantissa, exponent = nanos, -9
    while mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    # The largest SI suffix is E. Larger numbers are printed with an exponent, as Kubernetes does since pull request
    # 140459; before, it lost the exponent.
    if form is Format.DECIMAL_EXPONENT or exponent not in _DECIMAL_SUFFIX_OF:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX_OF[exponent]}"


def parse_quantity(value: str | int | float) -> Quantity:
    """Parse a quantity. A float is converted through its shortest decimal text, as in YAML and JSON.

    Rounds away from zero below a nano-unit and caps binary quantities at 2^63 - 1, as Kubernetes' ParseQuantity does.
    Raises ValueError for a text outside the documented grammar.
    """
    if type(value) is int:
        return Quantity(value * _NANOS_PER_UNIT)
    if isinstance(value, str):
        return _parse_text(value.strip())
    if not isinstance(value, float):
        raise ValueError(f"{value!r} is not a quantity; write a number or a text such as 500m, 2 or 4Gi")
    return _parse_text(repr(value))


@memoized(4096)  # traces repeat a few texts many thousand times
def _parse_text(text: str) -> Quantity:
    match = _QUANTITY_TEXT.fullmatch(text)
    digits, fraction = _digits(match)
    if match is None or len(digits) > _MAX_EXPONENT:
        raise ValueError(
            f"{text!r} is not a quantity; write a number, alone or with one of n u m k M G T P E, "
            "Ki Mi Gi Ti Pi Ei, or an exponent as in 1e3"
        )
    form, factor, exponent = _scale_of(match)
    # digits * factor * 10^(exponent - len(fraction)) units; nine powers of ten more in nano-units.
    shift = exponent - len(fraction) + 9
    nanos = int(digits or "0") * factor
    nanos = nanos * 10**shift if shift >= 0 else _divide_away_from_zero(nanos, 10**-shift)
    if form is Format.BINARY_SI:
        nanos = min(nanos, _MAX_INT64 * _NANOS_PER_UNIT)
    return Quantity(-nanos if match["sign"] == "-" else nanos, form)


def _digits(match: re.Match[str] | None) -> tuple[str, str]:
    """Return the significant digits, and the digits after the decimal point."""
    if match is None:
        return "", ""
    fraction = match["fraction"] or match["only_fraction"] or ""
    return ((match["whole"] or "") + fraction).lstrip("0"), fraction


def _scale_of(match: re.Match[str]) -> tuple[Format, int, int]:
    """Return the format, the factor and the power of ten of the suffix."""
    if match["binary"]:
        return Format.BINARY_SI, 1024 ** _BINARY_SUFFIXES.index(match["binary"]), 0
    if match["exponent"]:
        return Format.DECIMAL_EXPONENT, 1, _exponent(match["exponent"])
    return Format.DECIMAL_SI, 1, _DECIMAL_SUFFIXES[match["decimal"]]


def _exponent(text: str) -> int:
    """Parse an exponent, clamped to ±300."""
    exponent = parse_int(text)
    if exponent is None:
        exponent = -_MAX_EXPONENT if text.startswith("-") else _MAX_EXPONENT
    return min(max(exponent, -_MAX_EXPONENT), _MAX_EXPONENT)


def parse_amount(resource: str, value: str | int | float) -> int:
    """Parse a quantity of `resource`: millicores of cpu, whole units of everything else, rounded up.

    Rounds as Kubernetes does (MilliValue and Value), so that a small request never becomes zero. Raises ValueError if
    the text is not a quantity, is negative, or exceeds an int64.
    """
    quantity = parse_quantity(value)
    if quantity.nanos < 0:
        raise ValueError(f"{value} of {resource} is negative")
    amount = quantity.milli_value if resource == CPU else quantity.value
    if amount > _MAX_INT64:
        raise ValueError(f"{value} of {resource} is more than Kubernetes can count")
    return amount


def format_amount(resource: str, amount: int) -> str:
    """Format an amount in canonical form: cpu 1500 is `1500m`, memory 4294967296 is `4Gi`.

    Bytes that are not a multiple of 1024 are printed as plain digits, which are easier to read than `4300k`.
    """
    if resource == CPU:
        return str(Quantity(amount * _NANOS_PER_MILLI))
    if not _counts_bytes(resource):
        return str(Quantity(amount * _NANOS_PER_UNIT))
    if amount % 1024:
        return str(amount)
    return str(Quantity(amount * _NANOS_PER_UNIT, Format.BINARY_SI))


def _counts_bytes(resource: str) -> bool:
    return resource in (MEMORY, "storage", "ephemeral-storage") or resource.startswith("hugepages-")
