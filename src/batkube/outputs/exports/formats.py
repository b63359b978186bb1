"""The formats of exports, and their file suffixes."""

from __future__ import annotations

import enum
from pathlib import Path

from batkube.kernel.errors import InputError


class ExportFormat(enum.StrEnum):
    """The formats of `batkube export`."""

    PERFETTO = "perfetto"
    CHROME = "chrome"
    PARQUET = "parquet"


_SUFFIXES = {
    ".pftrace": ExportFormat.PERFETTO,
    ".perfetto-trace": ExportFormat.PERFETTO,
    ".json": ExportFormat.CHROME,
    ".parquet": ExportFormat.PARQUET,
}


def format_of(path: Path) -> ExportFormat:
    """Return the export format for the suffix of a path. Raises InputError."""
    export_format = _SUFFIXES.get(path.suffix.lower())
    if export_format is None:
        raise InputError(
            path,
            problem="does not have the suffix of an export format",
            remedy=f"use one of {', '.join(_SUFFIXES)}, or add --format",
        )
    return export_format
