"""Dashes, markers and hatches that distinguish series in print, where colours are greys of similar lightness."""

from __future__ import annotations

from typing import Literal, NamedTuple

from batkube.outputs.pages.colours import SERIES

Dashes = Literal["-", "none"] | tuple[float, tuple[float, ...]]

_DASHES: tuple[Dashes, ...] = (
    "-",
    (0.0, (6.0, 1.5)),
    (0.0, (1.0, 1.2)),
    (0.0, (7.0, 1.5, 1.2, 1.5)),
    (0.0, (12.0, 2.0)),
    (0.0, (7.0, 1.5, 1.2, 1.5, 1.2, 1.5)),
    (0.0, (2.4, 2.4)),
    (0.0, (12.0, 1.5, 3.0, 1.5)),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
_HATCHES = (None, "////", "....", "xxxx", "----", "||||", "++++", "oooo")
#: With more curves, dashes alone are hard to tell apart where curves are steep, so curves have some markers, too.
_MAX_DASHED_CURVES = 4
#: Distance of the markers of a curve, and of the first markers of consecutive curves, as shares of the figure.
_MARKER_SPACING, _MARKER_OFFSET = 0.16, 0.02


class SeriesMark(NamedTuple):
    """Appearance of a series: 64 in a row differ without their colours."""

    colour: str
    dashes: Dashes
    marker: str
    hatch: str | None


def series_mark(number: int) -> SeriesMark:
    """Return the appearance of the series with an index."""
    # From the ninth series on, dashes repeat with other markers.
    marker = _MARKERS[(number + number // len(_DASHES)) % len(_MARKERS)]
    colour, dashes = SERIES[number % len(SERIES)], _DASHES[number % len(_DASHES)]
    return SeriesMark(colour, dashes, marker, _HATCHES[number % len(_HATCHES)])


def curve_markers(number: int, count: int) -> tuple[str, tuple[float, float]]:
    """Return the marker of one of `count` curves of many points, empty for few curves, and where it is repeated."""
    marker = series_mark(number).marker if count > _MAX_DASHED_CURVES else ""
    return marker, (_MARKER_OFFSET * (number % len(_DASHES) + 1), _MARKER_SPACING)
