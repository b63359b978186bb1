"""Tables of a report: the same columns in every row, numbers right-aligned, sortable by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batkube.outputs.pages.markup import Child, Markup, element


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a column."""

    title: str
    #: A second, smaller line: the unit.
    subtitle: str = ""
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Content, sort key and style of a cell."""

    content: Child
    #: Sort key, if the shown text is not a plain number.
    value: float | None = None
    kind: str = ""


def html_table(headings: Sequence[Heading], rows: Sequence[Sequence[Cell | Child]], *, sortable: bool = True) -> Markup:
    """Return the table, which scrolls if it is wider than the page. The first cell of a row is its heading."""
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
    table = element("table", head, body, class_="sortable" if sortable and len(rows) > 1 else None)
    return element("div", table, class_="scroll", tabindex=0)


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
