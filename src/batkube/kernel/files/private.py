"""Files with secrets in them: kubeconfigs, tokens, keys."""

from __future__ import annotations

import os
from pathlib import Path

_OWNER_ONLY = 0o600


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that its owner alone can read, from its first byte on, whatever was at `path` before.

    It is made anew, so that neither the permissions of an older file count nor a link that somebody put there.
    """
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
