"""How to cite Batkube: CITATION.cff as a reference and as BibTeX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from batkube.kernel.files.yaml_reader import read_yaml
from batkube.outputs.pages.latex import escape
from batkube.version import __version__

#: The key of the BibTeX entry, which the methods paragraph cites.
KEY = "batkube"
_FILE = "CITATION.cff"


def citation() -> dict[str, Any]:
    """Return the content of CITATION.cff: the copy in an installed package, otherwise the repository's."""
    package = Path(__file__).resolve().parents[2]
    path = next(path for path in (package / _FILE, package.parents[1] / _FILE) if path.is_file())
    content = read_yaml(path)
    assert isinstance(content, dict)
    return content


def reference() -> str:
    """Return the reference as plain text."""
    cited = citation()
    year = f" ({str(cited['date-released'])[:4]})" if "date-released" in cited else ""
    return f"{_authors(cited)}{year}. {cited['title']}. Software, version {__version__}, {cited['license']}."


def bibtex() -> str:
    """Return the reference as a BibTeX entry."""
    cited = citation()
    fields = {
        "author": f"{{{escape(_authors(cited))}}}",
        "title": f"{{{escape(cited['title'])}}}",
        "version": __version__,
        "license": cited["license"],
        "url": cited.get("url"),
        "year": str(cited["date-released"])[:4] if "date-released" in cited else None,
        "note": f"Software, version {__version__}",
    }
    lines = [f"  {name:<8}= {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{KEY},", *lines, "}"])


def _authors(cited: dict[str, Any]) -> str:
    authors = cited["authors"]
    return " and ".join(author.get("name") or f"{author['given-names']} {author['family-names']}" for author in authors)
