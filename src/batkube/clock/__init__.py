"""Virtual time for Python programs: patches asyncio, threads, sockets and the time functions of the interpreter.

`--scheduler python:./my_scheduler.py` starts a program with it. A program that is started in another way calls
`install` before it imports anything else; outside a run, `install` does nothing.

Every wait with a timeout becomes a wait without one. Its deadline is written to a page of memory that the coordinator
of the run reads (`batkube.timing.pages.session_page`). When the coordinator signals the wake-up, the timer thread of
the program ends the wait. asyncio waits in its selector, so it needs no other patch. The program does not report that
it is idle: the coordinator reads from the kernel whether all its threads sleep.

The package depends only on the standard library, so that any interpreter can run it by its path: see `__main__`.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys

from .files import Connections, virtual_files
from .locks import virtual_locks
from .program_clock import ProgramClock, SharedPage
from .times import virtual_times

__all__ = ["install"]

_installed: list[ProgramClock] = []


def install() -> bool:
    """Attach this process to the run's clock; return False outside a run."""
    path = os.environ.get("BATKUBE_CLOCK")
    if path is None:
        return False
    if not _installed:
        clock = ProgramClock(SharedPage(path))
        _installed.append(clock)
        traffic = Connections(clock)
        _patch(virtual_times(clock) | virtual_locks(clock) | virtual_files(traffic) | _tls_of(traffic))
        os.register_at_fork(after_in_child=clock.after_fork)
        if clock.page.seed is not None:
            random.seed(clock.page.seed)
    return True


def _tls_of(traffic: Connections) -> dict[tuple[object, str], object]:
    """Return the replacements for the module `ssl`, which not every Python has."""
    if importlib.util.find_spec("_ssl") is None:
        return {}
    from .tls import virtual_tls

    return virtual_tls(traffic)


def _patch(replacements: dict[tuple[object, str], object]) -> None:
    """Replace Python's functions, also in modules that have imported them by name."""
    by_id = {id(getattr(where, name)): new for (where, name), new in replacements.items()}
    for path, module in list(sys.modules.items()):
        if f"{path}.".startswith(f"{__name__}."):
            continue  # this package still needs the originals
        for name, value in list(vars(module).items()):
            if id(value) in by_id:
                setattr(module, name, by_id[id(value)])
    for (where, name), new in replacements.items():
        setattr(where, name, new)
