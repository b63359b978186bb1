"""Whose fault an error is: yours, theirs, the machine's, or else ours.

Whoever catches an OSError says what could not be done: a folder not written, a program not started. When the cause is a
limit of the process, that misleads: another folder would not help. The cause is in the error's chain, and is told from
there in one place.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

from batkube.kernel.errors import InputError, RunFailed, has_story, nesting_limit

_FILES = "raise the limit of this shell: ulimit -n 4096"
_PROCESSES = "raise the limit of this shell (ulimit -u), or run fewer at once"
_MEMORY = "use a machine with more, raise the limit of this shell (ulimit -v), or run fewer at once"
#: By error number: what there is not enough of, and what helps.
_SHORTAGES = {
    errno.EMFILE: ("allows this process no more open files", _FILES),
    errno.ENFILE: ("has too many open files, of all programs together", "end some of them"),
    # Of fork(2) and clone(2). Locks and sockets give it as well, and whoever uses those does not chain it.
    errno.EAGAIN: ("allows no more processes or threads", _PROCESSES),
    errno.ENOMEM: ("has no memory left", _MEMORY),
}
#: Why a file that is open cannot be written.
_DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.ESTALE)
#: Where the kernel keeps the limit, and the unit to tell it in.
_LIMITS = {
    errno.EMFILE: (resource.RLIMIT_NOFILE, 1, ""),
    errno.EAGAIN: (resource.RLIMIT_NPROC, 1, ""),
    errno.ENOMEM: (resource.RLIMIT_AS, 1 << 20, " MiB"),
}
#: What libraries say that do not hand on the number: `dlopen`, and Python's own threads.
_ERRNO_BY_MESSAGE = {os.strerror(errno.EMFILE): errno.EMFILE, "can't start new thread": errno.EAGAIN}


def expected_error(error: BaseException) -> InputError | RunFailed | None:
    """Return how to report `error`, foreseen or not; None when it is a bug of ours.

    A RecursionError comes from an input that is nested deeply, and an OSError from the machine, where they are raised
    while inputs are read or outputs written. Those that a listener, a request or an appointment raises are bugs, unless
    a disk is the cause: outputs are written all the time.
    """
    if isinstance(error, RunFailed):
        return error
    if isinstance(error, RecursionError):
        if has_story(error):
            return None
        return InputError("an input", problem=f"is nested too deeply: {nesting_limit()}", remedy="make it flatter")
    if (shortage := _resource_shortage(error)) is not None:
        return shortage
    if isinstance(error, InputError):
        return error
    if isinstance(error, OSError) and (error.errno in _DISK_FAULTS or not has_story(error)):
        return RunFailed(str(error))
    return None


def _resource_shortage(error: BaseException) -> InputError | None:
    """Return what the machine ran out of, if that is why `error` was raised."""
    for cause in _causes(error):
        number = errno.ENOMEM if isinstance(cause, MemoryError) else getattr(cause, "errno", None)
        if number not in _SHORTAGES:
            number = next((number for text, number in _ERRNO_BY_MESSAGE.items() if text in str(cause)), None)
        if number is not None:
            problem, remedy = _SHORTAGES[number]
            return InputError("the machine", problem=f"{problem}{_limit_text(number)}", remedy=remedy)
    return None


def _limit_text(number: int) -> str:
    """Return the limit that was met, as a number; nothing where the shell set none."""
    if number not in _LIMITS:
        return ""
    kind, unit, word = _LIMITS[number]
    soft = resource.getrlimit(kind)[0]
    return "" if soft == resource.RLIM_INFINITY else f": the limit is {soft // unit:,}{word}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it, as a traceback would show them."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
