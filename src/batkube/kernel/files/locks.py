"""Files that are locked, so that one of several processes does a thing. A lock ends with whoever holds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def open_lock_file(path: Path) -> IO[bytes]:
    """Open a file to be locked, making it if need be.

    It is neither emptied nor looked for behind a link: whatever it may be, it is not harmed.
    """
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b")
