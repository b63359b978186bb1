"""Files derived from finished runs: charts, reports, tables."""

from __future__ import annotations

from pathlib import Path

from batkube.files.replacement import write_atomically
from batkube.outputs.files.manifest import add_to_manifest


def write_derived_file(path: Path, content: bytes) -> None:
    """Write a derived file; in a run's output folder, list it in the manifest, so that `--force` may replace it."""
    write_atomically(path, content)
    add_to_manifest(path)
