"""Files derived from finished runs: charts, reports, tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from batkube.files.replacement import open_atomically
from batkube.outputs.files.manifest import add_to_manifest


def write_derived_file(path: Path, content: bytes) -> None:
    """Write a derived file; in a run's output folder, list it in the manifest, so that `--force` may replace it."""
    with open_derived_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_derived_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that is written as by `write_derived_file` when the block ends, unless it raises."""
    with open_atomically(path) as file:
        yield file
    add_to_manifest(path)
