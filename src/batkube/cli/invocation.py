"""Answers a command line with an exit code: what becomes of errors, signals and standard streams.

An error is one message on standard error, never a traceback; only a bug of ours shows one, because it is meant to be
reported. The sub-commands are imported late, since their libraries take a while and Ctrl-C may come in the middle.
"""

from __future__ import annotations

import atexit
import errno
import gc
import signal
import sys
import traceback

from batkube.cli.process.exit_codes import BAD_INPUT, FAILED, INTERRUPTED
from batkube.cli.process.signals import interruptible
from batkube.cli.process.streams import tolerant_streams
from batkube.kernel.error_causes import expected_error
from batkube.kernel.errors import InputError, as_bug

#: The option, before the command, that has errors told with where they arose.
_TRACEBACK = "--traceback"
#: And the one there that is followed by its value.
_LOG_LEVEL = "--log-level"


def invoke() -> int:
    """Run the command line and return its exit code, after one message if something went wrong."""
    # While Python takes itself down, Ctrl-C has nothing left to interrupt.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with tolerant_streams() as output:
        code = _run_and_report_errors()
        sys.stdout.flush()
        # A reader that has seen enough (`| head -1`) is no failure.
        if code == 0 and output.failure is not None and output.failure.errno != errno.EPIPE:
            print(f"failed: standard output cannot be written: {output.failure.strerror}", file=sys.stderr)
            code = FAILED
    return code


def _run_and_report_errors() -> int:
    try:
        with interruptible():
            return _run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        failure = expected_error(error)
        if failure is None:
            bug = as_bug(error)
            traceback.print_exception(bug.origin)
            print(f"failed: {bug}\n  please report it, with the lines above", file=sys.stderr)
            return FAILED
        if _TRACEBACK in _leading_options()[0]:
            traceback.print_exception(error)
        is_input = isinstance(failure, InputError)
        print(f"{'error' if is_input else 'failed'}: {failure}", file=sys.stderr)
        return BAD_INPUT if is_input else FAILED


def _leading_options() -> tuple[list[str], str]:
    """Return the options before the command, and the command; empty if there is none."""
    options: list[str] = []
    for word in sys.argv[1:]:
        if not word.startswith("-") and options[-1:] != [_LOG_LEVEL]:
            return options, word
        options.append(word)
    return options, ""


def _run() -> int:
    # What is imported never becomes garbage: looking for some takes a fifteenth of the time it takes to start.
    gc.disable()
    from batkube.cli.app import build_app, help_only_app

    command = _leading_options()[1]
    run_command = build_app(command) if command else help_only_app()
    gc.enable()
    gc.freeze()
    try:
        run_command()
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            # typer has taken the KeyboardInterrupt and says nothing.
            raise KeyboardInterrupt from None
        return int(stop.code or 0)
    return 0
