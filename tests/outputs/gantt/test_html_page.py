"""Gantt charts as HTML pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from batkube.outputs.gantt.chart import save_gantt
from batkube.outputs.results import Results


class PageTexts(HTMLParser):
    """Collects the texts of a page with their enclosing elements."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[str] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.path.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.path.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.path and data.strip():
            self.texts.append(("/".join(self.path[-2:]), data))


def test_a_page_is_self_contained_and_has_a_hover_text_per_box(small: Results, tmp_path: Path) -> None:
    save_gantt(small, tmp_path / "x.html", title="<b> & co")

    page = (tmp_path / "x.html").read_text()
    parser = PageTexts()
    parser.feed(page)
    assert parser.path == []
    hovers = [text for path, text in parser.texts if path == "rect/title"]
    assert len(hovers) == 4
    assert hovers[0].splitlines() == [
        "job 1 (w0)",
        "user ada",
        "profile p",
        "submitted at 0 s",
        "waited 0 s, ran 1 min 40 s",
        "from 0 s to 1 min 40 s",
        "on machines 0-3",
        "COMPLETED_SUCCESSFULLY",
    ]
    assert ("head/title", "<b> & co") in parser.texts
    assert ("tr/td", "160.00") in parser.texts
    assert not re.search(r"""(src|href)=["']?http""", page)


def test_a_page_of_thousands_of_jobs_has_no_hover_texts(crowded: Results, tmp_path: Path) -> None:
    save_gantt(crowded, tmp_path / "x.html")

    page = (tmp_path / "x.html").read_text()
    assert len(page) < 3_000_000
    assert 'class="hover"' not in page
    assert "<td>6,000</td>" in page
