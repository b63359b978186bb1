from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import displayable, element, join, trusted
from batkube.outputs.pages.page import Section, collapsible, paragraph, render_page, verbatim
from report_pages import read_page

#: Texts that try to break out of wherever they are put.
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "</title><script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "' onmouseover='alert(1)",
            "<!-- ",
            "]]>",
            "&lt;b&gt; &amp; &nbsp",
            "</style></svg></details>",
            "{title} %s \\",
            "\x00\x1b[31m\ud800\ufffe",
            "java\tscript:alert(1)",
        ]
    ),
)


@given(HOSTILE)
def test_text_comes_out_as_it_went_in(text: str) -> None:
    found = read_page(element("p", text, title=text))

    assert found.problems == []
    assert found.tags == ["p"]
    assert found.text == displayable(text)


def test_what_is_html_already_is_not_escaped_again() -> None:
    assert element("p", element("b", "a & b"), 3, None) == "<p><b>a &amp; b</b>3</p>"
    assert join(("x", trusted("<hr>")), " ") == "x <hr>"
    assert element("input", disabled=True, hidden=False, class_="a", data_value='"') == (
        '<input disabled class="a" data-value="&quot;">'
    )


@given(HOSTILE, HOSTILE)
def test_no_text_of_a_user_changes_the_structure_of_a_page(title: str, other: str) -> None:
    def made(title: str, other: str) -> str:
        rows = [[other, Cell(title, 1.5, "best")], [title, other]]
        content = join(
            (paragraph(other), collapsible(title, verbatim(other)), html_table([Heading(title), Heading(other)], rows))
        )
        return render_page(title, [paragraph(other)], [Section("part", title, content)])

    found, harmless = read_page(made(title, other)), read_page(made("title", "other"))

    assert found.problems == []
    assert found.tags == harmless.tags
    assert found.ids == harmless.ids
    assert displayable(title) in found.text


def test_a_table_says_what_it_is_sorted_by_where_the_text_is_no_number() -> None:
    made = html_table(
        [Heading("a"), Heading("n", "runs", is_number=True)], [["x", Cell("1,000 ± 2", 1000.0)], ["y", 2]]
    )

    assert 'data-value="1000.0"' in made
    assert 'class="sortable"' in made
    assert '<th scope="row">x</th>' in made
