"""Lock files, to exclude other processes. The kernel releases a lock when its holder exits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def open_lock_file(path: Path) -> IO[bytes]:
    """Open a lock file, creating it if necessary.

    The file is not truncated and symbolic links are not followed, so an existing file is never damaged.
    """
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b")
