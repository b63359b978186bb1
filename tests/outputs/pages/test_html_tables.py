"""Tables of pages."""

from __future__ import annotations

from batkube.outputs.pages.html_tables import Cell, Heading, html_table


def test_cells_whose_text_is_not_a_number_have_a_sort_key() -> None:
    table = html_table(
        [Heading("a"), Heading("n", "runs", is_number=True)], [["x", Cell("1,000 ± 2", 1000.0)], ["y", 2]]
    )

    assert 'data-value="1000.0"' in table
    assert 'class="sortable"' in table
    assert '<th scope="row">x</th>' in table
