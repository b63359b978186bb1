"""Run the clients of a benchmark in processes of their own."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def running(processes: Sequence[multiprocessing.Process]) -> Iterator[None]:
    """Start the processes, and kill them at the end of the block."""
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
