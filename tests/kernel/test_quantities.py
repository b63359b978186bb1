"""Quantities are Kubernetes': the expected texts were printed by k8s.io/apimachinery's own Quantity."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batkube.kernel.quantities import (
    CPU,
    GPU,
    MEMORY,
    PODS,
    Quantity,
    format_amount,
    parse_amount,
    parse_quantity,
)

SUFFIXES = {
    "": Fraction(1),
    **{
        suffix: Fraction(10) ** power
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
    **{f"e{power}": Fraction(10) ** power for power in range(-12, 13)},
}
LARGEST_BINARY = 2**63 - 1

numbers = st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12})", fullmatch=True)
suffixes = st.sampled_from(list(SUFFIXES))


@st.composite
def texts(draw: st.DrawFn) -> str:
    return draw(numbers) + draw(suffixes)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Ki", "0"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("-1.5Gi", "-1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("0.5Ki", "512"),
        ("1.953125Ki", "2000"),
        ("1000Ki", "1000Ki"),
        ("1e3", "1e3"),
        ("12E6", "12e6"),
        ("1e1", "10"),
        ("100e-1", "10"),
        ("1E", "1E"),
        ("1.2345", "1234500u"),
        ("0.9n", "1n"),
        ("-0.1n", "-1n"),
        ("1e-10", "1e-9"),
        ("8Ei", "9223372036854775807"),
        ("9999999999999999999999", "9999999999999999999999"),
    ],
)
def test_a_quantity_is_printed_as_kubernetes_prints_it(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


def test_a_decimal_quantity_beyond_the_largest_suffix_is_printed_with_an_exponent() -> None:
    assert str(parse_quantity("1000E")) == "1e21"


@pytest.mark.parametrize(("number", "text"), [(2, "2"), (0.5, "500m"), (1e-7, "1e-7"), (1e22, "10e21"), (-3, "-3")])
def test_a_float_is_converted_through_its_decimal_text(number: float, text: str) -> None:
    assert parse_quantity(number) == parse_quantity(text)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "abc",
        "1Q",
        "1 Gi",
        "1e",
        "1.2.3",
        ".",
        "+",
        "Ki",
        "--1",
        "1KI",
        "1ki",
        "0x10",
        "١",
        "9" * 999,
    ],
)
def test_a_text_outside_the_grammar_is_rejected(value: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|exponent"):
        parse_quantity(value)


@pytest.mark.parametrize("exponent", ["999", "9999999999", "9" * 5000])
def test_a_huge_exponent_is_clamped_quickly(exponent: str) -> None:
    assert parse_quantity(f"1e{exponent}") == parse_quantity("1e300")
    assert parse_quantity(f"1e-{exponent}") == parse_quantity("1n")


@pytest.mark.parametrize("value", [True, None, [], {}, math.nan, math.inf])
def test_a_value_that_is_not_a_number_is_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(value)  # type: ignore[arg-type]


def test_sums_and_differences_are_exact_and_keep_the_first_format() -> None:
    total = parse_quantity("1Gi") + parse_quantity("512Mi") - parse_quantity("1Mi")

    assert str(total) == "1535Mi"
    assert str(Quantity(0) + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("0.1") + parse_quantity("0.2")) == "300m"
    assert str(-parse_quantity("2Ki")) == "-2Ki"


def test_quantities_are_compared_by_value_not_by_suffix() -> None:
    assert parse_quantity("1000m") == parse_quantity("1")
    assert hash(parse_quantity("1Ki")) == hash(parse_quantity("1024"))
    assert parse_quantity("1000Ki") < parse_quantity("1Mi") < parse_quantity("1.1M")


def exact_value(text: str) -> Fraction:
    """Return the value of `text` according to the grammar, computed in another way."""
    suffix = max((s for s in SUFFIXES if text.endswith(s)), key=len)
    mantissa = text.removesuffix(suffix)
    return Fraction(mantissa.removesuffix(".")) * SUFFIXES[suffix]


@given(texts())
@example("1Ei")
@example("-7.Ei")
def test_parsing_is_exact_down_to_nano_units_then_rounds_away_from_zero(text: str) -> None:
    exact = exact_value(text)
    if text.endswith("i"):
        exact = max(min(exact, Fraction(LARGEST_BINARY)), Fraction(-LARGEST_BINARY))

    nanos = parse_quantity(text).nanos

    rounded = math.ceil(abs(exact) * 10**9)
    assert nanos == (rounded if exact >= 0 else -rounded)


@given(texts())
def test_a_printed_quantity_round_trips(text: str) -> None:
    quantity = parse_quantity(text)

    assert parse_quantity(str(quantity)) == quantity


@given(texts())
def test_the_canonical_form_is_its_own_canonical_form(text: str) -> None:
    canonical = str(parse_quantity(text))
    if canonical.lstrip("-").isdecimal() and text.endswith("i"):
        # A binary quantity printed without suffix is parsed as a decimal one (1.953125Ki: 2000, then 2k), as in
        # Kubernetes; after that it is stable.
        canonical = str(parse_quantity(canonical))

    assert str(parse_quantity(canonical)) == canonical


@given(texts(), texts())
def test_the_order_of_values_is_the_order_of_quantities(first: str, second: str) -> None:
    low, high = sorted((parse_quantity(first), parse_quantity(second)))

    assert low.nanos <= high.nanos
    assert low.value <= high.value
    assert low.milli_value <= high.milli_value
    if exact_value(first) <= exact_value(second):
        assert parse_quantity(first) <= parse_quantity(second)


@pytest.mark.parametrize(
    ("resource", "value", "expected"),
    [
        (CPU, "1", 1000),
        (CPU, 2, 2000),
        (CPU, 0.25, 250),
        (CPU, "0.0001", 1),
        (CPU, "1500m", 1500),
        (MEMORY, "4Gi", 4 * 1024**3),
        (MEMORY, "100m", 1),
        (MEMORY, 12, 12),
        (PODS, "110", 110),
        (GPU, "0", 0),
    ],
)
def test_amounts_are_millicores_or_whole_units_rounded_up(resource: str, value: str | float, expected: int) -> None:
    assert parse_amount(resource, value) == expected


@pytest.mark.parametrize(("value", "problem"), [("-1", "negative"), ("1e30", "more than"), ("lots", "not a quantity")])
def test_an_amount_that_is_negative_or_too_large_is_rejected(value: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_amount(MEMORY, value)


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        (CPU, 1500, "1500m"),
        (CPU, 2000, "2"),
        (CPU, 0, "0"),
        (MEMORY, 4 * 1024**3, "4Gi"),
        (MEMORY, 1536 * 1024**2, "1536Mi"),
        (MEMORY, 1000, "1000"),
        (MEMORY, 4_000_000_001, "4000000001"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        (GPU, 8, "8"),
    ],
)
def test_an_amount_is_printed_in_its_usual_unit(resource: str, value: int, text: str) -> None:
    assert format_amount(resource, value) == text


@given(st.sampled_from([CPU, MEMORY, PODS, GPU, "ephemeral-storage"]), st.integers(0, LARGEST_BINARY))
def test_a_printed_amount_round_trips(resource: str, value: int) -> None:
    assert parse_amount(resource, format_amount(resource, value)) == value
