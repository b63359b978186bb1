"""Lock files, to exclude other processes. The kernel releases a lock when its holder exits."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO


def open_lock_file(path: Path) -> IO[bytes]:
    """Open a lock file, creating it if necessary.

    The file is not truncated and symbolic links are not followed, so an existing file is never damaged.
    """
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b")


def try_lock(file: IO[bytes] | int) -> bool:
    """Lock an open file until it is closed; return False if another process holds the lock.

    Raises OSError on file systems without locks, as some network file systems.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(file: IO[bytes]) -> None:
    """Lock an open file until it is closed; wait until no other process holds the lock."""
    fcntl.flock(file, fcntl.LOCK_EX)
