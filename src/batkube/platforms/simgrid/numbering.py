"""Which machine of a SimGrid platform has which number: the one place that decides.

Two orders are needed (docs/decisions/0016). Runs number machines as people do, host2 before host10. Batsim 4.2.1 means
to do the same (`string_numeric_comparator`), but sorts a copy (src/machines.cpp, sort_machines_by_ascending_name), so
that its machines keep SimGrid's order, which is that of their names as texts: host10 before host2. Schedulers hear
numbers, so `batkube batsim` must tell them Batsim's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def natural_sort_key(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return the sort key of a name in runs: host2 comes before host10.

    A number compares with another by value (how many digits, then which), and with any other character as the
    character 0 does; names that are alike so far compare as texts.
    """
    parts = re.findall(r"([0-9]+)|([^0-9])", name, re.DOTALL)
    order = tuple(
        (ord("0"), len(number.lstrip("0")), number.lstrip("0")) if number else (ord(character), 0, "")
        for number, character in parts
    )
    return order, name


def in_batsim_order(names: Iterable[str]) -> list[str]:
    """Return names in the order in which Batsim 4.2.1 numbers machines: as texts, by their bytes."""
    return sorted(names, key=str.encode)
