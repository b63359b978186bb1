"""The structure of pages."""

from __future__ import annotations

from hypothesis import given
from tests.outputs.pages.hostile_texts import HOSTILE

from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import displayable, join
from batkube.outputs.pages.page import Section, collapsible, paragraph, render_page, verbatim
from report_pages import read_page


@given(HOSTILE, HOSTILE)
def test_texts_of_users_do_not_change_the_structure_of_a_page(title: str, other: str) -> None:
    def page(title: str, other: str) -> str:
        rows = [[other, Cell(title, 1.5, "best")], [title, other]]
        content = join(
            (paragraph(other), collapsible(title, verbatim(other)), html_table([Heading(title), Heading(other)], rows))
        )
        return render_page(title, [paragraph(other)], [Section("part", title, content)])

    hostile, harmless = read_page(page(title, other)), read_page(page("title", "other"))

    assert hostile.problems == []
    assert hostile.tags == harmless.tags
    assert hostile.ids == harmless.ids
    assert displayable(title) in hostile.text
