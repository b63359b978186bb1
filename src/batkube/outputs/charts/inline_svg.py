"""Render a matplotlib figure as a file, or as inline SVG of an HTML page.

An inline drawing keeps its text as text, so that it can be selected, searched and read aloud. It has a title and a
description, uses the page's colours, and prefixes its ids, which must be unique in the page. Metadata is removed.
"""

from __future__ import annotations

import io
import re
import shutil
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.outputs.pages.colours import LIGHT
from batkube.outputs.pages.markup import Markup, element, trusted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PNG_DPI = 200
#: Figures are laid out with DejaVu Sans; fonts of the same widths come first.
_FONTS = "'DejaVu Sans', Verdana, 'Bitstream Vera Sans', 'Segoe UI', Arial, sans-serif"

#: Characters that LaTeX cannot typeset without further packages, as commands that it can.
_TEX_SYMBOLS = {
    "✗": r"\ensuremath{\dagger}",
    "τ": r"\ensuremath{\tau}",
    "−": r"\ensuremath{-}",
    "≈": r"\ensuremath{\approx}",
}

_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_NAMESPACES = re.compile(r'\s+xmlns(?::\w+)?="[^"]*"')
_TAG = re.compile(r"<[^>]*>")
_NAMES = re.compile(r'(\bid="|\bhref="#|url\(#)')
_COLOURS = {value.lower(): name for name, value in LIGHT.items() if name not in ("paper", "raised")}
_COLOUR = re.compile("|".join(_COLOURS), re.IGNORECASE)


def render_figure(figure: Figure, kind: str, *, dpi: int = _PNG_DPI) -> bytes:
    """Render the figure as `svg`, `png`, `pdf` or `pgf`, without date and version: the same data gives the same bytes.

    `dpi` applies to PNG, and to the rasterized parts of other formats.
    matplotlib measures the text of PGF with LaTeX. Raises InputError if no LaTeX is installed.
    """
    omitted = {
        "svg": ("Date", "Creator"),
        "png": ("Software",),
        "pdf": ("CreationDate", "ModDate", "Creator", "Producer"),
        "pgf": (),
    }[kind]
    from batkube.outputs.charts.style import chart_style

    buffer = io.BytesIO()
    with chart_style():
        if kind == "pgf":
            return _render_pgf(figure)
        metadata: dict[str, None] = dict.fromkeys(omitted)
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata, transparent=kind == "svg")
    return buffer.getvalue()


def _render_pgf(figure: Figure) -> bytes:
    import matplotlib

    program = next((name for name in ("pdflatex", "xelatex", "lualatex") if shutil.which(name)), None)
    if program is None:
        remedy = "install LaTeX (Debian: texlive-latex-recommended, texlive-pictures), or choose pdf"
        raise InputError("pgf", problem="needs LaTeX to measure its text, and none is installed", remedy=remedy)
    declared = "".join(
        rf"\DeclareUnicodeCharacter{{{ord(symbol):04X}}}{{{tex}}}" for symbol, tex in _TEX_SYMBOLS.items()
    )
    preamble = declared if program == "pdflatex" else ""
    matplotlib.rcParams.update({"pgf.texsystem": program, "pgf.rcfonts": False, "pgf.preamble": preamble})
    buffer = io.BytesIO()
    try:
        figure.savefig(buffer, format="pgf")
    except (RuntimeError, ValueError) as error:
        lines = str(error).strip().splitlines() or ["no reason given"]
        problem = f"{program} cannot typeset the text of a figure: {lines[0]}"
        raise InputError("pgf", problem=problem, remedy="install texlive-pictures, or choose pdf") from error
    # matplotlib begins the file with comments that name a version and this machine's folders.
    drawing = buffer.getvalue().decode()
    # matplotlib: backends/backend_pgf.py, _get_preamble loads `underscore`, which makes `_` a letter; so does this.
    letters = r"\begingroup\catcode`\_=\active\def_{\textunderscore{}}%"
    drawing = f"{letters}\n{drawing[drawing.index(chr(92) + 'begingroup') :].rstrip()}\\endgroup\n"
    return "".join(_TEX_SYMBOLS.get(character, character) for character in drawing).encode()


def inline_svg(svg: str, *, prefix: str, title: str, description: str = "", recolour: bool = True) -> Markup:
    """Return the drawing of an SVG file as inline markup; `prefix` must be unique in the page.

    `recolour` replaces the colours of `colours.py` by CSS variables that follow the reader's light or dark setting.
    """
    drawing = svg[svg.index("<svg") :].rstrip()
    drawing = _METADATA.sub("", drawing).replace("xlink:href", "href")
    opening, _, rest = drawing.partition(">")

    def adapted(tag: re.Match[str]) -> str:
        named = _NAMES.sub(rf"\g<1>{prefix}-", tag[0])
        if not recolour:
            return named
        coloured = _COLOUR.sub(lambda match: f"var(--{_COLOURS[match[0].lower()]}, {match[0]})", named)
        return coloured.replace("'DejaVu Sans'", _FONTS)

    # Only in tags: the text of a label may be `#222222`.
    rest = _TAG.sub(adapted, rest)
    captions = element("title", title, id=f"{prefix}-title")
    names = f"{prefix}-title"
    if description:
        captions = trusted(captions + element("desc", description, id=f"{prefix}-desc"))
        names += f" {prefix}-desc"
    opening = _NAMESPACES.sub("", opening)
    return trusted(f'{opening} role="img" aria-labelledby="{names}">{captions}{rest}')
