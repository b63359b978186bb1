"""Escaping of HTML elements."""

from __future__ import annotations

from hypothesis import given
from tests.outputs.pages.hostile_texts import HOSTILE

from batkube.outputs.pages.markup import displayable, element, join, trusted
from report_pages import read_page


@given(HOSTILE)
def test_text_and_attributes_are_escaped(text: str) -> None:
    page = read_page(element("p", text, title=text))

    assert page.problems == []
    assert page.tags == ["p"]
    assert page.text == displayable(text)


def test_elements_are_not_escaped_again() -> None:
    assert element("p", element("b", "a & b"), 3, None) == "<p><b>a &amp; b</b>3</p>"
    assert join(("x", trusted("<hr>")), " ") == "x <hr>"
    assert element("input", disabled=True, hidden=False, class_="a", data_value='"') == (
        '<input disabled class="a" data-value="&quot;">'
    )
