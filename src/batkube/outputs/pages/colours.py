"""The colours of reports and their figures, for light and dark pages.

Figures are drawn with the light colours. Inside a page each is replaced by the CSS variable of its name, so that one
drawing serves both. Series colours, with their marker and dash, are distinguishable with any colour vision (after
P. Tol, Colour Schemes, SRON/EPS/TN/09-002), and have a contrast of at least 3:1 to their background.
"""

from __future__ import annotations

LIGHT = {
    "paper": "#FFFFFF",
    "raised": "#F6F7F9",
    "ink": "#222222",
    "quiet": "#5A5F66",
    "rule": "#E4E4E4",
    "axis": "#888888",
    "link": "#1F5F99",
    "good": "#1B7F4D",
    "bad": "#A3352A",
    "warning": "#8A5A00",
    "series-1": "#33669A",
    "series-2": "#B4442E",
    "series-3": "#228833",
    "series-4": "#AA3377",
    "series-5": "#8F7A00",
    "series-6": "#117A8B",
    "series-7": "#6B4C9A",
    "series-8": "#555555",
}
DARK = {
    "paper": "#16181C",
    "raised": "#1F2329",
    "ink": "#E6E6E6",
    "quiet": "#A4ABB3",
    "rule": "#33383F",
    "axis": "#7C838B",
    "link": "#8CBFF2",
    "good": "#66CC99",
    "bad": "#FF9C8A",
    "warning": "#F0C060",
    "series-1": "#77AADD",
    "series-2": "#EE8866",
    "series-3": "#6CC08B",
    "series-4": "#FFAABB",
    "series-5": "#EEDD88",
    "series-6": "#66CCEE",
    "series-7": "#B9A3E3",
    "series-8": "#BBBBBB",
}

SERIES = tuple(LIGHT[f"series-{number}"] for number in range(1, 9))
