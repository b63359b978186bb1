"""Programs that end with whoever started them, be it by SIGKILL: on a clock that nobody moves they would stand still.

Linux can do that (prctl(2), PR_SET_PDEATHSIG); elsewhere a program survives its parent's SIGKILL.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def kill_with_parent() -> Callable[[], None] | None:
    """Return what a new process has to call before it becomes a program (the `preexec_fn` of subprocess)."""
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
