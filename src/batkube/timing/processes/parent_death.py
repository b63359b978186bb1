"""Kills a program when its parent process dies, even by SIGKILL; without its clock it would hang forever.

Linux supports that (prctl(2), PR_SET_PDEATHSIG). On other systems a program survives a SIGKILL of its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def kill_with_parent() -> Callable[[], None] | None:
    """Return a function for a new process to call before exec (subprocess: `preexec_fn`), or None."""
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
