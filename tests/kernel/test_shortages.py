"""What the machine has run out of is found in an error's chain, and nowhere else."""

from __future__ import annotations

import errno

import pytest

from batkube.kernel.errors import InputError
from batkube.kernel.shortages import shortage


def chained(cause: BaseException, *, hidden: bool = False) -> InputError:
    """Return the error that somebody raised on meeting `cause`."""
    try:
        try:
            raise cause
        except BaseException as error:
            raise InputError("out", problem="cannot be written") from (None if hidden else error)
    except InputError as error:
        return error


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        (OSError(errno.EMFILE, "Too many open files", "out"), "ulimit -n"),
        (OSError(errno.ENFILE, "Too many open files in system"), "end some"),
        (ImportError("libz.so.1: cannot open shared object file: Too many open files"), "ulimit -n"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "ulimit -u"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "ulimit -v"),
        (MemoryError(), "ulimit -v"),
    ],
)
def test_a_shortage_is_told_instead_of_what_it_led_to(cause: BaseException, remedy: str) -> None:
    told = shortage(chained(cause))

    assert told is not None
    assert remedy in (told.remedy or "")


def test_other_troubles_are_no_shortage() -> None:
    assert shortage(chained(OSError(errno.ENOSPC, "No space left on device"))) is None
    assert shortage(InputError("w.json", problem="is not JSON")) is None


def test_a_lock_that_somebody_holds_is_no_shortage() -> None:
    held = BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    assert shortage(chained(held, hidden=True)) is None
