"""Fields of CSV files with many rows, for which `csv.writer` would take longer than all else that makes a row."""

from __future__ import annotations

import re

_NEEDS_QUOTES = re.compile('[,"\n\r]')


def csv_field(text: str) -> str:
    """Return `text` as a CSV field, quoted when it must be (RFC 4180)."""
    if not text.isalnum() and _NEEDS_QUOTES.search(text):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text
