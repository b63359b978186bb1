"""Handling of bugs in `serve`: shut down with a report, or log the bug and continue (`--keep-going`).

Requests and appointments report the exceptions they raise. Other exceptions occur in callbacks of the event loop (watch
timers, streams, memory clean-up) or in threads, and are caught by the hooks that `installed` sets.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from batkube.kernel.errors import as_bug
from batkube.kernel.fidelity import FidelityNote, FidelityNotes

log = logging.getLogger(__name__)

_CONTINUED = FidelityNote("bug", "a bug in Batkube was logged and the run continued: do not trust the results")
_PACKAGE = str(Path(__file__).parent.parent)


class BugReports:
    """Receives every unexpected exception of a served cluster."""

    def __init__(self, shut_down: Callable[[Exception], None], notes: FidelityNotes, *, keep_going: bool) -> None:
        """`shut_down` shuts the service down with an error."""
        self._shut_down = shut_down
        self._notes = notes
        self._keep_going = keep_going

    def report(self, error: Exception) -> None:
        """Shut down with `error`, or log and note it. Call it in the event loop."""
        if not self._keep_going:
            self._shut_down(error)
            return
        message = str(as_bug(error))
        log.error("%s", message, exc_info=error)
        self._notes.add(_CONTINUED, example=message)

    @contextlib.contextmanager
    def installed(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """While the block runs, report exceptions of callbacks in `loop` and of threads."""

        def in_callback(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, Exception) and _is_ours(error):
                self.report(error)
            else:
                loop.default_exception_handler(context)

        def in_thread(arguments: threading.ExceptHookArgs) -> None:
            if isinstance(arguments.exc_value, Exception) and not loop.is_closed():
                loop.call_soon_threadsafe(self.report, arguments.exc_value)

        previous = threading.excepthook
        loop.set_exception_handler(in_callback)
        threading.excepthook = in_thread
        try:
            yield
        finally:
            threading.excepthook = previous
            loop.set_exception_handler(None)


def _is_ours(error: Exception) -> bool:
    """Return whether Batkube's code is in the traceback: clients can provoke errors in asyncio alone."""
    return any(frame.f_code.co_filename.startswith(_PACKAGE) for frame, _ in traceback.walk_tb(error.__traceback__))
