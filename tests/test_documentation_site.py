"""The documentation site builds without warnings, has the elements that GitHub shows, and loads nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

pytest.importorskip("material", reason="needs `pip install 'batkube[docs]'`")
markdown_it = pytest.importorskip("markdown_it")

DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Elements that differ when Python-Markdown reads a page differently from GitHub: an unindented list, a lost table.
ELEMENTS = {"ul", "ol", "li", "table", "tr", "th", "td", "pre", "blockquote", "img", "h1", "h2", "h3", "h4", "strong"}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; any warning, such as a broken link or a page without navigation, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    # With --quiet, MkDocs would not count warnings either, and --strict would never fail.
    assert {line.partition(" ")[0] for line in result.stderr.splitlines()} == {"INFO"}
    return folder


class Elements(HTMLParser):
    """Counts the elements of a page's content, and collects the addresses that the page loads."""

    def __init__(self, *, is_content: bool) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.loaded: list[str] = []
        self._is_content = is_content

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._is_content |= tag == "article"
        if self._is_content and tag in ELEMENTS:
            self.counts[tag] += 1
        if tag != "a":
            self.loaded += [value for name in ("src", "href", "data") if (value := values.get(name))]

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._is_content = False


def elements_of(html: str, *, is_content: bool = False) -> Elements:
    elements = Elements(is_content=is_content)
    elements.feed(html)
    return elements


def test_each_page_has_the_elements_that_github_shows(site: Path) -> None:
    as_github = markdown_it.MarkdownIt("commonmark").enable("table")
    for page in PAGES:
        name = page.relative_to(DOCS).with_suffix(".html")
        built = site / (name.with_name("index.html") if name.stem == "README" else name)
        expected = elements_of(as_github.render(page.read_text(encoding="utf-8")), is_content=True).counts

        assert elements_of(built.read_text(encoding="utf-8")).counts == expected, name


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    built = sorted(site.rglob("*.html"))
    assert len(built) > len(PAGES)
    for page in built:
        text = page.read_text(encoding="utf-8")
        assert [one for one in elements_of(text).loaded if re.match(r"(\w+:)?//", one)] == [], page
        assert "Content-Security-Policy" in text, page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import)\s*["']?(\w+:)?//""", sheet.read_text(encoding="utf-8")), sheet


def test_files_outside_docs_have_pages(site: Path) -> None:
    page = (site / "how-to" / "write-a-policy.html").read_text(encoding="utf-8")
    example = "repository/examples/policies/smallest_area_first.py.html"

    assert f'href="../{example}"' in page
    assert "SmallestAreaFirst" in (site / example).read_text(encoding="utf-8")
    assert 'href="../how-to/write-a-policy.html"' in (site / "repository" / "CONTRIBUTING.html").read_text()
