"""The order, and so the ids, of the machines of a SimGrid platform.

There are two orders (docs/decisions/0016-two-orders-of-machines.md). Runs use the natural order: host2 before host10.
So does Batsim 4.2.1 by intention (string_numeric_comparator in src/machines.cpp); but sort_machines_by_ascending_name
sorts a copy, so its machines keep SimGrid's order, which is that of their names as text: host10 before host2. Since
schedulers refer to machines by id, `batkube batsim` uses that order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def natural_sort_key(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return the sort key of a name in the natural order: host2 before host10.

    Numbers are compared by value (first by their number of digits, then as text), and a number with another character
    like the character 0. Names that are equal in this order are compared as text.
    """
    parts = re.findall(r"([0-9]+)|([^0-9])", name, re.DOTALL)
    order = tuple(
        (ord("0"), len(number.lstrip("0")), number.lstrip("0")) if number else (ord(character), 0, "")
        for number, character in parts
    )
    return order, name


def in_batsim_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of machines in Batsim 4.2.1: as text, byte by byte."""
    return sorted(names, key=str.encode)
