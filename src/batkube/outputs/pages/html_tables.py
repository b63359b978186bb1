"""Tables of a report: every row the same columns, numbers to the right, sortable by what they really are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batkube.outputs.pages.markup import Child, Markup, element


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a column."""

    title: str
    #: A second, smaller line: the unit.
    subtitle: str = ""
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows, and how."""

    content: Child
    #: What the column is sorted by where the shown text is not a plain number.
    value: float | None = None
    kind: str = ""


def html_table(headings: Sequence[Heading], rows: Sequence[Sequence[Cell | Child]], *, sortable: bool = True) -> Markup:
    """Return the table; it scrolls by itself when it is wider than the page. The first column heads its row."""
    head = element("thead", element("tr", *(_heading_cell(heading) for heading in headings)))
    body = element(
        "tbody",
        *(
            element(
                "tr",
                *(
                    _body_cell(cell, heading, number == 0)
                    for number, (cell, heading) in enumerate(_cells_with_headings(row, headings))
                ),
            )
            for row in rows
        ),
    )
    made = element("table", head, body, class_="sortable" if sortable and len(rows) > 1 else None)
    return element("div", made, class_="scroll", tabindex=0)


def _cells_with_headings(row: Sequence[Cell | Child], headings: Sequence[Heading]) -> list[tuple[Cell, Heading]]:
    cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
    return list(zip(cells, headings, strict=True))


def _heading_cell(heading: Heading) -> Markup:
    below = element("small", heading.subtitle) if heading.subtitle else None
    return element(
        "th", element("span", heading.title), below, scope="col", class_="number" if heading.is_number else None
    )


def _body_cell(cell: Cell, heading: Heading, is_first: bool) -> Markup:
    kinds = " ".join(filter(None, ("number" if heading.is_number else "", cell.kind)))
    value = None if cell.value is None else repr(cell.value)
    if is_first:
        return element("th", cell.content, scope="row", class_=kinds or None, data_value=value)
    return element("td", cell.content, class_=kinds or None, data_value=value)
