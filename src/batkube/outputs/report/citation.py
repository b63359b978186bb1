"""How to cite Batkube: CITATION.cff as a reference and as BibTeX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from batkube.files.yaml_reader import read_yaml
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
    data = citation()
    year = f" ({str(data['date-released'])[:4]})" if "date-released" in data else ""
    return f"{_authors(data)}{year}. {data['title']}. Software, version {__version__}, {data['license']}."


def bibtex() -> str:
    """Return the reference as a BibTeX entry."""
    data = citation()
    fields = {
        "author": f"{{{escape(_authors(data))}}}",
        "title": f"{{{escape(data['title'])}}}",
        "version": __version__,
        "license": data["license"],
        "url": data.get("url"),
        "year": str(data["date-released"])[:4] if "date-released" in data else None,
        "note": f"Software, version {__version__}",
    }
    lines = [f"  {name:<8}= {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{KEY},", *lines, "}"])


def _authors(data: dict[str, Any]) -> str:
    authors = data["authors"]
    return " and ".join(author.get("name") or f"{author['given-names']} {author['family-names']}" for author in authors)
