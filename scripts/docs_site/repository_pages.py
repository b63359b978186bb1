"""MkDocs hook: add a page to the site for each file outside docs/ that a page links to.

Pages link to README files, examples and source files as `../../examples/…`, which works on GitHub and in a checkout.
The site contains docs/ only, so each linked file becomes the page `repository/PATH`, and the links are rewritten.
Markdown files are shown unchanged, notebooks as their cells, other files as blocks of code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Files in the navigation, which are included even without a link.
ABOUT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
_LINK = re.compile(r"(?<=\]\()(?P<target>[^)#\s]+)(?=[)#])")
_LANGUAGES = {".py": "python", ".sh": "sh", ".yaml": "yaml", ".json": "json", ".c": "c", ".go": "go"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside docs/ that a page, or one of these files, links to."""
    pages = [ROOT / "docs" / file.src_uri for file in files.documentation_pages()]
    todo = [ROOT / name for name in ABOUT]
    todo += [target for page in pages for target in _linked_files(page)]
    while todo:
        path = todo.pop()
        uri = _site_uri(path)
        if path.is_relative_to(DOCS) or files.get_file_from_path(uri):
            continue
        is_about = path.relative_to(ROOT).as_posix() in ABOUT
        inclusion = InclusionLevel.INCLUDED if is_about else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, uri, content=_markdown_of(path), inclusion=inclusion))
        if path.suffix == ".md":
            todo += _linked_files(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links between docs/ and the rest of the repository to the pages of the site."""
    uri = PurePosixPath(page.file.src_uri)
    source = ROOT / uri.relative_to("repository") if uri.parts[0] == "repository" else DOCS / uri

    def on_site(link: re.Match[str]) -> str:
        path = _resolve(source, link["target"])
        if path is None or (path.is_relative_to(DOCS) and source.is_relative_to(DOCS)):
            return link[0]
        return relpath(_site_uri(path), uri.parent)

    return _LINK.sub(on_site, markdown)


def _linked_files(page: Path) -> Iterator[Path]:
    for link in _LINK.finditer(page.read_text(encoding="utf-8")):
        if path := _resolve(page, link["target"]):
            yield path


def _resolve(page: Path, target: str) -> Path | None:
    """Return the file of the repository that a link refers to; None for other links."""
    if ":" in target:
        return None
    path = (page.parent / target).resolve()
    return path if path.is_file() and path.is_relative_to(ROOT) else None


def _site_uri(path: Path) -> str:
    """Return the source path of a file in the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix()
    return f"repository/{name}" if path.suffix == ".md" else f"repository/{name}.md"


def _markdown_of(path: Path) -> str:
    """Return a file as the Markdown of its page; source files are excluded from search."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    body = _notebook(text) if path.suffix == ".ipynb" else _block(text, _LANGUAGES.get(path.suffix, "text"))
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path.relative_to(ROOT).as_posix()}\n\n{body}"


def _notebook(text: str) -> str:
    """Return the cells of a notebook, without their outputs."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n\n".join(source if kind == "markdown" else _block(source, "python") for kind, source in cells)


def _block(text: str, language: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
