"""A matplotlib figure as a part of a page, or as a file of its own.

Inside a page a drawing keeps its text as text (it can be selected, found and read aloud), says what it shows, takes the
page's colours, and shares no name with the drawings next to it. What only a file of its own needs is left out.
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
#: Fonts with the widths of the one that figures are laid out with come first.
_FONTS = "'DejaVu Sans', Verdana, 'Bitstream Vera Sans', 'Segoe UI', Arial, sans-serif"

#: What a LaTeX document does not set without further packages, in commands that it does.
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
    """Return the figure as `svg`, `png`, `pdf` or `pgf`. Neither a date nor a version is in it: same data, same bytes.

    `dpi` is that of a PNG, and of what is a bitmap inside the others.
    PGF is drawn by LaTeX: its own fonts are measured, so that one must be installed. Raises InputError.
    """
    unsaid = {
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
        metadata: dict[str, None] = dict.fromkeys(unsaid)
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata, transparent=kind == "svg")
    return buffer.getvalue()


def _render_pgf(figure: Figure) -> bytes:
    import matplotlib

    program = next((name for name in ("pdflatex", "xelatex", "lualatex") if shutil.which(name)), None)
    if program is None:
        remedy = "install one (Debian: texlive-latex-recommended, texlive-pictures), or choose pdf"
        raise InputError("pgf", problem="needs a LaTeX to measure its text, and there is none", remedy=remedy)
    declared = "".join(rf"\DeclareUnicodeCharacter{{{ord(one):04X}}}{{{tex}}}" for one, tex in _TEX_SYMBOLS.items())
    preamble = declared if program == "pdflatex" else ""
    matplotlib.rcParams.update({"pgf.texsystem": program, "pgf.rcfonts": False, "pgf.preamble": preamble})
    buffer = io.BytesIO()
    try:
        figure.savefig(buffer, format="pgf")
    except (RuntimeError, ValueError) as error:
        lines = str(error).strip().splitlines() or ["it gives no reason"]
        problem = f"{program} cannot set the text of a figure: {lines[0]}"
        raise InputError("pgf", problem=problem, remedy="install texlive-pictures, or choose pdf") from error
    # matplotlib begins the file with comments that name a version and this machine's folders.
    drawing = buffer.getvalue().decode()
    # Underscores in labels are letters, as with the package that matplotlib measures with.
    letters = r"\begingroup\catcode`\_=\active\def_{\textunderscore{}}%"
    drawing = f"{letters}\n{drawing[drawing.index(chr(92) + 'begingroup') :].rstrip()}\\endgroup\n"
    return "".join(_TEX_SYMBOLS.get(one, one) for one in drawing).encode()


def inline_svg(svg: str, *, prefix: str, title: str, description: str = "", recolour: bool = True) -> Markup:
    """Return an SVG file's drawing for a page; `prefix` must be its own within the page.

    `recolour` makes the colours of `colours.py` follow the reader's setting; a drawing on white paper keeps its own.
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

    # In tags alone: a label may well say `#222222`.
    rest = _TAG.sub(adapted, rest)
    captions = element("title", title, id=f"{prefix}-title")
    names = f"{prefix}-title"
    if description:
        captions = trusted(captions + element("desc", description, id=f"{prefix}-desc"))
        names += f" {prefix}-desc"
    opening = _NAMESPACES.sub("", opening)
    return trusted(f'{opening} role="img" aria-labelledby="{names}">{captions}{rest}')
