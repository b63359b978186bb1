"""What is kept is run, so nobody else may have had a hand in it.

A folder or a program of another user's, or one that others may write to, is refused: whoever can put a file there can
put a program there that we would run. It is looked at each time, since permissions change. What we make ourselves is
closed to others, as a user's cache is meant to be (XDG Base Directory Specification: 0700).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from batkube.kernel.errors import InputError

#: The umask of what we let Go write.
OWNER_ONLY_UMASK = 0o077
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner can look into, if it is not there."""
    folder.mkdir(mode=0o777 & ~OWNER_ONLY_UMASK, parents=True, exist_ok=True)


def check_permissions(path: Path, cache: Path) -> None:
    """Raise InputError unless `path`, and the folders from `cache` down to it, are written by us or root alone.

    Folders above `cache` may be anybody's, but not such that everybody can rename what is in them; in /tmp nobody can.
    """
    for one in [*(cache / part for part in reversed(path.relative_to(cache).parents)), path]:
        owners = {one.lstat().st_uid, one.stat().st_uid} - {os.geteuid(), 0}
        if owners:
            raise _permission_error(one, f"belongs to another user ({owners.pop()})")
        if one.stat().st_mode & _WRITABLE_BY_OTHERS:
            raise _permission_error(one, "can be written by others")
    for above in cache.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _permission_error(above, "can be written by everybody")


def _permission_error(path: Path, problem: str) -> InputError:
    return InputError(
        path,
        problem=f"{problem}, and programs that are kept there would be run",
        remedy="look at it, and then remove it or `chmod go-w` it; or set XDG_CACHE_HOME to a folder of your own",
    )
