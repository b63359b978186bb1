"""The run's clock for programs in Python: asyncio, threads, and whatever asks what time it is.

`--scheduler python:./my_scheduler.py` starts a program with it. One that is started in another way calls `install`
before it imports anything else; outside a run that does nothing.

Every wait that has a timeout becomes one that has none. When it is to end stands on a page of memory that the
coordinator of the run reads (`batkube.timing.pages.session_page`), and a thread of ours, the keeper, ends it when the coordinator
rings. asyncio waits in its selector, and so needs nothing of its own. Whether the program is idle nobody has to say:
the coordinator hears from the kernel that all its threads are asleep.

The package needs nothing but Python, so that any interpreter can run it by its path: see `__main__`.
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
    """Put this process on the run's clock; return whether there is one."""
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
    """Put ours in the place of Python's, also where a module has taken one by name already."""
    ours = {id(getattr(where, name)): new for (where, name), new in replacements.items()}
    for path, module in list(sys.modules.items()):
        if f"{path}.".startswith(f"{__name__}."):
            continue  # these are where the originals are still needed
        for name, value in list(vars(module).items()):
            if id(value) in ours:
                setattr(module, name, ours[id(value)])
    for (where, name), new in replacements.items():
        setattr(where, name, new)
