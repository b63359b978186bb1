"""Main loop of a worker process: it executes calls, one at a time, until the process that started it ends."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import queue
import signal
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any, NoReturn


def serve(descriptor: int) -> None:
    """Execute the calls that arrive over the connection with this file descriptor.

    A thread reads them, so that a closed connection is detected during a call too. The result is no longer needed then,
    and the process exits immediately, with the programs that it started.
    """
    faulthandler.enable(all_threads=False)
    signal.signal(signal.SIGTERM, lambda _number, _frame: _exit_now())
    connection: Connection[Any, Any] = Connection(descriptor)
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_calls, args=(connection, calls), daemon=True).start()
    _import_all()
    while True:
        message = calls.get()
        _truncate_output()
        try:
            function, arguments, keywords = pickle.loads(message)
            answer = pickle.dumps((True, function(*arguments, **keywords)))
        except Exception:
            # The caller handles the error; it ends the call and not the worker.
            answer = pickle.dumps((False, traceback.format_exc()))
        connection.send_bytes(answer)


def _truncate_output() -> None:
    """Empty the file that stdout goes to, so that it has only the output of the current call."""
    with contextlib.suppress(OSError):
        os.ftruncate(1, 0)
        os.lseek(1, 0, os.SEEK_SET)


def _import_all() -> None:
    """Import the modules that every run needs, and exclude them from garbage collection."""
    import batkube.simulation.run  # noqa: F401

    gc.freeze()


def _read_calls(connection: Connection[Any, Any], calls: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            calls.put(connection.recv_bytes())
    _exit_now()


def _exit_now() -> NoReturn:
    """Exit immediately; the programs that this process started end with it (`timing.orphans`)."""
    os._exit(1)
