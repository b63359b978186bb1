"""Render a matplotlib figure as a file, or as inline SVG of an HTML page.

The text of an inline drawing stays text, so that it can be selected, searched and read aloud. It has a title and a
description, uses the page's colours, and prefixes its ids, which must be unique in the page. Metadata is removed.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.outputs.pages.colours import LIGHT
from batkube.outputs.pages.latex import escape
from batkube.outputs.pages.markup import Markup, element, trusted

if TYPE_CHECKING:
    from matplotlib.backend_bases import GraphicsContextBase
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Text

_PNG_DPI = 200
#: Figures are laid out with DejaVu Sans; fonts of the same widths come first.
_FONTS = "'DejaVu Sans', Verdana, 'Bitstream Vera Sans', 'Segoe UI', Arial, sans-serif"

_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_NAMESPACES = re.compile(r'\s+xmlns(?::\w+)?="[^"]*"')
_TAG = re.compile(r"<[^>]*>")
_NAMES = re.compile(r'(\bid="|\bhref="#|url\(#)')
_COLOURS = {value.lower(): name for name, value in LIGHT.items() if name not in ("paper", "raised")}
_COLOUR = re.compile("|".join(_COLOURS), re.IGNORECASE)


def render_figure(figure: Figure, kind: str, *, dpi: int = _PNG_DPI, is_transparent: bool = False) -> bytes:
    """Render the figure as `svg`, `png`, `pdf` or `pgf`, without date and version: the same data gives the same bytes.

    Files have a white background unless they are transparent: dark text would be unreadable on a dark page.
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
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata, transparent=is_transparent)
    return buffer.getvalue()


def _render_pgf(figure: Figure) -> bytes:
    import matplotlib

    program = next((name for name in ("pdflatex", "xelatex", "lualatex") if shutil.which(name)), None)
    if program is None:
        remedy = "install LaTeX (Debian: texlive-latex-recommended, texlive-pictures), or choose pdf"
        raise InputError("pgf", problem="needs LaTeX to measure its text, and none is installed", remedy=remedy)
    matplotlib.rcParams.update({"pgf.texsystem": program, "pgf.rcfonts": False})
    buffer = io.BytesIO()
    try:
        with escaped_pgf_text():
            figure.savefig(buffer, format="pgf")
    except (RuntimeError, ValueError) as error:
        lines = str(error).strip().splitlines() or ["unknown error"]
        problem = f"{program} cannot typeset the text of a figure: {lines[0]}"
        raise InputError("pgf", problem=problem, remedy="install texlive-pictures, or choose pdf") from error
    # matplotlib begins the file with comments that name a version and this machine's folders.
    drawing = buffer.getvalue().decode()
    return f"{drawing[drawing.index(chr(92) + 'begingroup') :].rstrip()}\n".encode()


@contextlib.contextmanager
def escaped_pgf_text() -> Iterator[None]:
    r"""Let matplotlib escape text in PGF, which it passes to LaTeX as it is: a name could be `\input{…}`."""
    from matplotlib.backends import backend_pgf

    original = backend_pgf.RendererPgf

    class EscapingRenderer(original):  # type: ignore[misc, valid-type]
        def draw_text(
            self,
            gc: GraphicsContextBase,
            x: float,
            y: float,
            s: str,
            prop: FontProperties,
            angle: float,
            ismath: bool = False,
            mtext: Text | None = None,
        ) -> None:
            super().draw_text(gc, x, y, escape(s), prop, angle, ismath, mtext)

        def get_text_width_height_descent(
            self, s: str, prop: FontProperties, ismath: bool
        ) -> tuple[float, float, float]:
            size: tuple[float, float, float] = super().get_text_width_height_descent(escape(s), prop, ismath)
            return size

    backend_pgf.RendererPgf = EscapingRenderer  # type: ignore[misc]
    try:
        yield
    finally:
        backend_pgf.RendererPgf = original  # type: ignore[misc]


def inline_figure(figure: Figure, *, prefix: str, title: str, description: str = "", recolour: bool = True) -> Markup:
    """Return the figure as inline markup; `prefix` must be unique in the page.

    It has the colours of its page, unless it is not to be recoloured: then it has a white background.
    """
    svg = render_figure(figure, "svg", is_transparent=recolour).decode()
    return inline_svg(svg, prefix=prefix, title=title, description=description, recolour=recolour)


def inline_svg(svg: str, *, prefix: str, title: str, description: str = "", recolour: bool = True) -> Markup:
    """Return the drawing of an SVG file as inline markup; `prefix` must be unique in the page.

    `recolour` replaces the colours of `colours.py` by CSS variables that follow the reader's light or dark setting.
    """
    drawing = svg[svg.index("<svg") :].rstrip()
    drawing = _METADATA.sub("", drawing).replace("xlink:href", "href")
    opening, _, rest = drawing.partition(">")

    def adapt_tag(tag: re.Match[str]) -> str:
        prefixed = _NAMES.sub(rf"\g<1>{prefix}-", tag[0])
        if not recolour:
            return prefixed
        coloured = _COLOUR.sub(lambda match: f"var(--{_COLOURS[match[0].lower()]}, {match[0]})", prefixed)
        return coloured.replace("'DejaVu Sans'", _FONTS)

    # Only tags are adapted: the text of a label may be `#222222`.
    rest = _TAG.sub(adapt_tag, rest)
    captions = element("title", title, id=f"{prefix}-title")
    names = f"{prefix}-title"
    if description:
        captions = trusted(captions + element("desc", description, id=f"{prefix}-desc"))
        names += f" {prefix}-desc"
    opening = _NAMESPACES.sub("", opening)
    return trusted(f'{opening} role="img" aria-labelledby="{names}">{captions}{rest}')
