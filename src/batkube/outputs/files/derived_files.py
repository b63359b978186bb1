"""What is made from runs that are over: pictures, pages, tables."""

from __future__ import annotations

from pathlib import Path

from batkube.kernel.files.replacement import write_atomically
from batkube.outputs.files.manifest import add_to_manifest


def write_derived_file(path: Path, content: bytes) -> None:
    """Write what was made from runs; in a run's own folder it becomes one of the run's files, as `--force` has it."""
    write_atomically(path, content)
    add_to_manifest(path)
