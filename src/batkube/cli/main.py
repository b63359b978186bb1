"""The command `batkube`: what it does about errors and signals.

Exit codes are part of the interface: 0 done, 1 the run failed, 2 bad input or usage, 130 interrupted before or after
the run itself. An error is one message on standard error, never a traceback; only a bug of ours shows one, because it
is meant to be reported.

The sub-commands are imported inside `main`, since their libraries take a while and Ctrl-C may come in the middle.
"""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType

from batkube.kernel.errors import InputError, RunFailed

#: 128 and the number of SIGINT, as shells count.
_INTERRUPTED = 130


def main() -> None:
    """Run the command line, turning errors into a message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows only ASCII gets question marks, not a crash.
            stream.reconfigure(errors="replace")
    handled_before = signal.signal(signal.SIGTERM, _terminate)
    try:
        _run()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except RunFailed as error:
        print(f"failed: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output (`| head`) has seen enough.
        sys.stderr.close()
        sys.exit(0)
    finally:
        signal.signal(signal.SIGTERM, handled_before)


def _run() -> None:
    from batkube.cli.app import app

    try:
        app()
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            # typer has taken the KeyboardInterrupt and says nothing.
            raise KeyboardInterrupt from None
        raise


def _terminate(_number: int, _frame: FrameType | None) -> None:
    """Treat SIGTERM as Ctrl-C, so that a run keeps what it computed; once, or a second one would stop the writing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
