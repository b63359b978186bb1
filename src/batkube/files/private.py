"""Files that contain secrets: kubeconfigs, tokens, keys."""

from __future__ import annotations

import os
from pathlib import Path

_OWNER_ONLY = 0o600


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can ever read, replacing a file at `path`.

    A new file is created, so that neither the permissions of an older file nor a symbolic link at `path` matter.
    """
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
