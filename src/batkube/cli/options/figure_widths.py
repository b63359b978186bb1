"""Widths of figures in print."""

from __future__ import annotations

import enum


class FigureWidth(enum.StrEnum):
    """The width of a figure in a paper."""

    COLUMN = "column"
    PAGE = "page"


#: In inches: a column, and the whole page, of a journal with two columns (IEEE, ACM).
WIDTHS_IN = {FigureWidth.COLUMN: 3.5, FigureWidth.PAGE: 7.16}
WIDTH_HELP = "For print: as wide as a column (3.5 in) or a page (7.16 in) of a paper, without a title."
