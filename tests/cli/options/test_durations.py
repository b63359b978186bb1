"""Durations and times in options."""

from __future__ import annotations

import pytest

from batkube.cli.options.durations import positive_duration, time_option_s
from batkube.kernel.errors import InputError


def test_a_duration_has_a_unit_or_is_in_seconds() -> None:
    assert positive_duration("--patience", "1h30m") == 5400 * 10**9
    assert positive_duration("--patience", "90") == 90 * 10**9


@pytest.mark.parametrize("text", ["0", "soon", "-5s"])
def test_an_invalid_duration_is_rejected_with_the_name_of_the_option(text: str) -> None:
    with pytest.raises(InputError, match=f"--patience {text}"):
        positive_duration("--patience", text)


def test_a_time_may_be_absent_or_zero() -> None:
    assert (time_option_s("--from", None), time_option_s("--from", "0"), time_option_s("--from", "2d")) == (
        None,
        0,
        172_800,
    )


def test_an_invalid_time_is_rejected_with_the_name_of_the_option() -> None:
    with pytest.raises(InputError, match="--from"):
        time_option_s("--from", "soon")
