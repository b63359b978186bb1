"""Where built programs are kept: the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return Batkube's folder in the user's cache (XDG base directories)."""
    given = os.environ.get("XDG_CACHE_HOME")  # noqa: TID251 - the command line reads the environment
    return (Path(given) if given else Path.home() / ".cache") / "batkube"
