"""Classifies an error: wrong input, failed run, exhausted machine, or a bug in Batkube.

An OSError is usually wrapped by an error that names the failed action: a folder not written, a program not started. If
a resource limit of the process is the cause, that message misleads, because another folder would not help. This module
looks for resource limits in the error's chain of causes.
"""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Iterator

from batkube.kernel.errors import InputError, RunFailed, has_context, nesting_limit

_FILES = "raise the limit of this shell: ulimit -n 4096"
_PROCESSES = "raise the limit of this shell (ulimit -u), or run fewer at once"
_MEMORY = "use a machine with more, raise the limit of this shell (ulimit -v), or run fewer at once"
#: The problem and the remedy, by error number.
_SHORTAGES = {
    errno.EMFILE: ("allows this process no more open files", _FILES),
    errno.ENFILE: ("has too many open files, of all programs together", "end some of them"),
    # Raised by fork(2) and clone(2). Locks and sockets raise it too, but their callers do not chain it.
    errno.EAGAIN: ("allows no more processes or threads", _PROCESSES),
    errno.ENOMEM: ("has no memory left", _MEMORY),
}
#: Go's fatal errors when the system gives it no memory (runtime/malloc.go, mheap.go, mpagealloc_64bit.go).
_GO_OUT_OF_MEMORY = re.compile(
    r"^fatal error: (failed to reserve .*|.*out of memory.*|.*cannot (allocate|map) .*)$",
    re.MULTILINE,
)
#: Why a file that is open cannot be written.
_DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.ESTALE)
#: Why a path cannot be opened, whatever it is opened for.
_PATH_FAULTS = (errno.EACCES, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
#: The limit behind each error number, and its unit in messages.
_LIMITS = {
    errno.EMFILE: (resource.RLIMIT_NOFILE, 1, ""),
    errno.EAGAIN: (resource.RLIMIT_NPROC, 1, ""),
    errno.ENOMEM: (resource.RLIMIT_AS, 1 << 20, " MiB"),
}
#: Messages of errors that carry no error number: from `dlopen`, and from Python's threading.
_ERRNO_BY_MESSAGE = {os.strerror(errno.EMFILE): errno.EMFILE, "can't start new thread": errno.EAGAIN}


def expected_error(error: BaseException) -> InputError | RunFailed | None:
    """Return the error to show to the user instead of `error`; None if `error` is a bug in Batkube.

    While inputs are read or outputs written, a RecursionError comes from deeply nested input, and an OSError from the
    machine. Those raised by a listener, a request or an appointment are bugs, unless the disk is the cause: outputs
    are written all the time.
    """
    if isinstance(error, RunFailed):
        return error
    if isinstance(error, RecursionError):
        if has_context(error):
            return None
        return InputError("an input", problem=f"is nested too deeply: {nesting_limit()}", remedy="make it flatter")
    if (shortage := _resource_shortage(error)) is not None:
        return shortage
    if isinstance(error, InputError):
        return error
    if isinstance(error, OSError) and (error.errno in _DISK_FAULTS or not has_context(error)):
        if error.errno in _PATH_FAULTS and error.filename is not None:
            problem = f"cannot be opened: {os.strerror(error.errno)}"
            return InputError(str(error.filename), problem=problem, remedy="check the path and its permissions")
        return RunFailed(str(error))
    return None


def _resource_shortage(error: BaseException) -> InputError | None:
    """Return an InputError if `error` was caused by an exhausted resource of the machine."""
    for cause in _causes(error):
        number = errno.ENOMEM if isinstance(cause, MemoryError) else getattr(cause, "errno", None)
        if number not in _SHORTAGES:
            number = next((number for text, number in _ERRNO_BY_MESSAGE.items() if text in str(cause)), None)
        if number is not None:
            problem, remedy = _SHORTAGES[number]
            return InputError("the machine", problem=f"{problem}{_limit_text(number)}", remedy=remedy)
    return None


def out_of_memory(output: str) -> str:
    """Return why a Go program got no memory, without the stack that it prints; empty if that is not why it ended."""
    if (match := _GO_OUT_OF_MEMORY.search(output)) is None:
        return ""
    problem, remedy = _SHORTAGES[errno.ENOMEM]
    return f"{match[0]}: the machine {problem}{_limit_text(errno.ENOMEM)}; {remedy}"


def _limit_text(number: int) -> str:
    """Return the limit as text, or an empty text if no limit is set."""
    if number not in _LIMITS:
        return ""
    kind, unit, word = _LIMITS[number]
    soft = resource.getrlimit(kind)[0]
    return "" if soft == resource.RLIM_INFINITY else f": the limit is {soft // unit:,}{word}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, in the order of a traceback."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
