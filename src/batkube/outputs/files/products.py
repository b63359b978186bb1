"""What is made from runs that are over: pictures, pages, tables."""

from __future__ import annotations

from pathlib import Path

from batkube.kernel.replacing import write_whole
from batkube.outputs.files.manifest import enter


def write_product(path: Path, content: bytes) -> None:
    """Write what was made from runs; in a run's own folder it becomes one of the run's files, as `--force` has it."""
    write_whole(path, content)
    enter(path)
