"""Run the command line, and convert errors and signals to an exit code.

An error prints one message on standard error and no traceback. Only an internal error prints a traceback, because users
should report it. Subcommands are imported late: their libraries load slowly, and Ctrl-C must work meanwhile.
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

#: The global option that prints the traceback of every error.
_TRACEBACK = "--traceback"
#: The global option that is followed by a value.
_LOG_LEVEL = "--log-level"


def invoke() -> int:
    """Run the command line, print an error if there is one, and return the exit code."""
    # Restore the default action, so that Ctrl-C during Python's shutdown prints no traceback.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with tolerant_streams() as output:
        code = _run_and_report_errors()
        sys.stdout.flush()
        # EPIPE is not a failure: the reader closed the pipe early (`| head -1`).
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
    """Return the global options and the command, which is empty if there is none."""
    options: list[str] = []
    for word in sys.argv[1:]:
        if not word.startswith("-") and options[-1:] != [_LOG_LEVEL]:
            return options, word
        options.append(word)
    return options, ""


def _run() -> int:
    # Imported objects never become garbage; collections during the imports take a fifteenth of the start-up time.
    gc.disable()
    from batkube.cli.app import build_app, help_only_app

    command = _leading_options()[1]
    run_command = build_app(command) if command else help_only_app()
    gc.enable()
    gc.freeze()
    # Runs create few cycles: less frequent collections save 1 % of the time and cost a megabyte.
    gc.set_threshold(10_000)
    try:
        run_command()
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            # typer converts KeyboardInterrupt to this exit code.
            raise KeyboardInterrupt from None
        return int(stop.code or 0)
    return 0
