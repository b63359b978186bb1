"""Contrast of the colours of pages."""

from __future__ import annotations

import pytest

from batkube.outputs.pages.colours import DARK, LIGHT


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (Web Content Accessibility Guidelines 2.2, "contrast ratio")."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_have_enough_contrast_to_the_background(colours: dict[str, str]) -> None:
    for name in ("ink", "quiet", "link", "good", "bad", "warning"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
        assert contrast(colours[name], colours["raised"]) >= 4.5, name
    for name in [*(name for name in colours if name.startswith("series-")), "axis"]:
        assert contrast(colours[name], colours["paper"]) >= 3, name


def test_both_modes_have_the_same_names_and_each_colour_has_one() -> None:
    assert list(LIGHT) == list(DARK)
    assert len({value.lower() for value in LIGHT.values()}) == len(LIGHT)
