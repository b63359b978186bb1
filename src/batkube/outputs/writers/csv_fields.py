"""Fields of CSV files with many rows, for which `csv.writer` would take longer than all else that makes a row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from batkube.kernel.quantities import CPU

_NEEDS_QUOTES = re.compile('[,"\n\r]')


def csv_field(text: str) -> str:
    """Return `text` as a CSV field, quoted when it must be (RFC 4180)."""
    if not text.isalnum() and _NEEDS_QUOTES.search(text):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


def amount_cells(amounts: Mapping[str, int], names: Sequence[str]) -> list[str]:
    """Return the cells for these resources: cpu in cores, others in whole units; empty if `amounts` lacks one."""
    cells = []
    for name in names:
        amount = amounts.get(name)
        if amount is None:
            cells.append("")
        else:
            cells.append(format_cores(amount) if name == CPU else str(amount))
    return cells


def format_cores(milli: int) -> str:
    """Return millicores as cores with three decimals."""
    return f"{milli // 1000}.{milli % 1000:03d}"
