"""Permission checks for the build cache, whose programs are executed.

A folder or a program that belongs to another user, or that others may write to, is rejected: another user could place a
program there. Permissions are checked on each use, because they can change. Folders created here are closed to others,
as the XDG Base Directory Specification requires (0700).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from batkube.kernel.errors import InputError

#: The umask for files written by Go.
OWNER_ONLY_UMASK = 0o077
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private_folder(folder: Path) -> None:
    """Create a folder that only its owner can access, if it does not exist."""
    folder.mkdir(mode=0o777 & ~OWNER_ONLY_UMASK, parents=True, exist_ok=True)


def check_permissions(path: Path, cache: Path) -> None:
    """Raise InputError if users other than the current one and root can write to `path` or its folders below `cache`.

    Folders above `cache` may belong to any user, but other users must not be able to rename their entries; the sticky
    bit of /tmp prevents that.
    """
    for checked in [*(cache / part for part in reversed(path.relative_to(cache).parents)), path]:
        owners = {checked.lstat().st_uid, checked.stat().st_uid} - {os.geteuid(), 0}
        if owners:
            raise _permission_error(checked, f"belongs to another user ({owners.pop()})")
        if checked.stat().st_mode & _WRITABLE_BY_OTHERS:
            raise _permission_error(checked, "is writable by other users")
    for parent in cache.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _permission_error(parent, "is writable by all users")


def _permission_error(path: Path, problem: str) -> InputError:
    return InputError(
        path,
        problem=f"{problem}, and programs in this cache are executed",
        remedy="check it, then remove it or run `chmod go-w`; or set XDG_CACHE_HOME to a folder that you own",
    )
