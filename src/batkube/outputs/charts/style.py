"""Matplotlib style of all charts, independent of the user's matplotlibrc."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib

from batkube.outputs.pages.colours import LIGHT

_STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": LIGHT["axis"],
    "axes.axisbelow": True,
    "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"],
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.labelcolor": LIGHT["ink"],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "batkube",
    "svg.fonttype": "path",
    "text.parse_math": False,  # names may contain `$`
    "path.simplify": True,
}
#: In addition to the house style: text stays text.
_TEXT_AS_TEXT = {"svg.fonttype": "none", "pdf.fonttype": 42, "font.size": 9.0}


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the house style instead of the user's matplotlibrc; also needed while saving a figure."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Names may be in any script. A missing glyph is a box in a bitmap; browsers use other fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from (current )?font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)  # type: ignore[arg-type]
        yield


@contextmanager
def chart_style() -> Iterator[None]:
    """Apply the house style, with text kept as text."""
    with house_style():
        matplotlib.rcParams.update(_TEXT_AS_TEXT)  # type: ignore[arg-type]
        yield
