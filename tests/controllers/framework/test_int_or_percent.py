"""Numbers and percentages."""

from __future__ import annotations

import pytest

from batkube.controllers.framework.int_or_percent import scaled_value


@pytest.mark.parametrize(("value", "up", "down"), [(3, 3, 3), ("25%", 3, 2), ("100%", 10, 10), ("0%", 0, 0)])
def test_a_percentage_is_rounded_up_or_down(value: int | str, up: int, down: int) -> None:
    assert scaled_value(value, 10, round_up=True) == up
    assert scaled_value(value, 10, round_up=False) == down
