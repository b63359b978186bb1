"""A program with file systems of its own, in which folders of ours stand at places of our choice.

Linux lets any user have that (unshare(2): user and mount namespaces), unless the machine's owner or a container's
forbids it. Nobody else sees anything of it, and it is gone with the program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping
from pathlib import Path

_NEW_USERS, _NEW_MOUNTS = 0x10000000, 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
#: Of umount2(2): at once, also if it is in use.
_DETACH = 2
_LIBRARY = ctypes.CDLL(None, use_errno=True)


def bind_mounts(folders: Mapping[Path, Path], room: Path) -> Callable[[], None]:
    """Return what a new process has to call before it becomes a program, so that it finds each folder at its place.

    `room` is a folder of the caller's, in which the surroundings of places are put together anew. It is gone then.
    """
    room.mkdir()
    user, group = os.getuid(), os.getgid()

    def prepare() -> None:
        if _LIBRARY.unshare(_NEW_MOUNTS | (_NEW_USERS if user else 0)):
            raise OSError(ctypes.get_errno(), "unshare")
        if user:
            _map_user(user, group)
        _mount("none", "/", _RECURSIVE | _PRIVATE)
        for place, folder in folders.items():
            _bind_at(folder, Path(os.path.realpath(place)), room)
        with contextlib.suppress(OSError):
            room.rmdir()

    return prepare


def _mount(source: Path | str, to: Path | str, flags: int, kind: str = "none") -> None:
    if _LIBRARY.mount(str(source).encode(), str(to).encode(), kind.encode(), ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), "mount")


def _bind_at(folder: Path, place: Path, room: Path) -> None:
    """Let a folder stand at a place; what is above it and does not exist is made, beside all that is there."""
    above = next(parent for parent in (place, *place.parents) if parent.exists())
    if above == place:
        _mount(folder, place, _BIND)
        return
    _mount("tmpfs", room, 0, "tmpfs")
    for one in above.iterdir():
        if _create_mount_point(one, room / one.name):
            with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile
                _mount(one, room / one.name, _BIND | _RECURSIVE)
    (room / place.relative_to(above)).mkdir(parents=True)
    _mount(folder, room / place.relative_to(above), _BIND)
    _mount(room, above, _BIND | _RECURSIVE)
    if _LIBRARY.umount2(str(room).encode(), _DETACH):
        raise OSError(ctypes.get_errno(), "umount2")


def _map_user(user: int, group: int) -> None:
    """Remain who we are among new users (user_namespaces(7))."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")


def _create_mount_point(one: Path, to: Path) -> bool:
    """Make what something can be mounted on; return whether that is needed, as it is for all but links."""
    if one.is_symlink():
        to.symlink_to(one.readlink())
        return False
    if one.is_dir():
        to.mkdir()
    else:
        to.touch()
    return True
