"""Bind mounts for a program in its own mount namespace, such as a service account folder.

Linux allows that to unprivileged users (unshare(2): user and mount namespaces), unless the administrator or a container
runtime forbids it. The mounts are visible to the program only, and end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping
from pathlib import Path

_NEW_USERS, _NEW_MOUNTS = 0x10000000, 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
#: MNT_DETACH of umount2(2): unmount even if the mount is in use.
_DETACH = 2
_LIBRARY = ctypes.CDLL(None, use_errno=True)


def bind_mounts(folders: Mapping[Path, Path], scratch: Path) -> Callable[[], None]:
    """Return a function for a new process to call before exec, which mounts folders at the paths that are their keys.

    `scratch` is a new folder, used to assemble the parents of paths that do not exist. The function removes it.
    """
    scratch.mkdir()
    user, group = os.getuid(), os.getgid()

    def prepare() -> None:
        if _LIBRARY.unshare(_NEW_MOUNTS | (_NEW_USERS if user else 0)):
            raise OSError(ctypes.get_errno(), "unshare")
        if user:
            _map_user(user, group)
        _mount("none", "/", _RECURSIVE | _PRIVATE)
        for target, folder in folders.items():
            _bind_at(folder, Path(os.path.realpath(target)), scratch)
        with contextlib.suppress(OSError):
            scratch.rmdir()

    return prepare


def _mount(source: Path | str, to: Path | str, flags: int, kind: str = "none") -> None:
    if _LIBRARY.mount(str(source).encode(), str(to).encode(), kind.encode(), ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), "mount")


def _bind_at(folder: Path, target: Path, scratch: Path) -> None:
    """Mount a folder at a path; if that does not exist, mount a copy of its closest parent with the path added."""
    parent = next(path for path in (target, *target.parents) if path.exists())
    if parent == target:
        _mount(folder, target, _BIND)
        return
    _mount("tmpfs", scratch, 0, "tmpfs")
    for entry in parent.iterdir():
        if _create_mount_point(entry, scratch / entry.name):
            with contextlib.suppress(FileNotFoundError):  # it was deleted meanwhile
                _mount(entry, scratch / entry.name, _BIND | _RECURSIVE)
    (scratch / target.relative_to(parent)).mkdir(parents=True)
    _mount(folder, scratch / target.relative_to(parent), _BIND)
    _mount(scratch, parent, _BIND | _RECURSIVE)
    if _LIBRARY.umount2(str(scratch).encode(), _DETACH):
        raise OSError(ctypes.get_errno(), "umount2")


def _map_user(user: int, group: int) -> None:
    """Keep user and group in the new user namespace (user_namespaces(7))."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")


def _create_mount_point(entry: Path, to: Path) -> bool:
    """Create a mount point for `entry` at `to`, or copy it if it is a symbolic link; return whether to mount it."""
    if entry.is_symlink():
        to.symlink_to(entry.readlink())
        return False
    if entry.is_dir():
        to.mkdir()
    else:
        to.touch()
    return True
