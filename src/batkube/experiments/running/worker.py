"""What a worker process does: it answers calls, one at a time, until whoever started it is gone."""

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
    """Answer the calls that come over the connection with this file descriptor.

    A thread reads them, so that the end of the connection is noticed in the middle of a call too: nobody waits for its
    result any more, and the process ends at once, with the programs it has started.
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
            # Whoever asked decides what an error means; here it ends one call and not the worker.
            answer = pickle.dumps((False, traceback.format_exc()))
        connection.send_bytes(answer)


def _truncate_output() -> None:
    """Empty the file that we print to: only what the present call prints may be asked for."""
    with contextlib.suppress(OSError):
        os.ftruncate(1, 0)
        os.lseek(1, 0, os.SEEK_SET)


def _import_all() -> None:
    """Import what every run needs, and have the garbage collector leave it alone from then on."""
    import batkube.simulation.run  # noqa: F401

    gc.freeze()


def _read_calls(connection: Connection[Any, Any], calls: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            calls.put(connection.recv_bytes())
    _exit_now()


def _exit_now() -> NoReturn:
    """End this process at once; the programs it has started end with it (`timing.orphans`)."""
    os._exit(1)
