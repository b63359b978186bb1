"""Classification of errors; a resource shortage is found only in the chain of causes."""

from __future__ import annotations

import errno

import pytest

from batkube.kernel.error_causes import expected_error
from batkube.kernel.errors import Bug, InputError, RunFailed


def chained(cause: BaseException, *, hidden: bool = False) -> InputError:
    """Return an error that was raised because of `cause`."""
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
def test_a_shortage_is_reported_instead_of_the_error_it_caused(cause: BaseException, remedy: str) -> None:
    reported = expected_error(chained(cause))

    assert isinstance(reported, InputError)
    assert reported.source == "the machine"
    assert remedy in (reported.remedy or "")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_an_expected_error_is_reported_unchanged(number: int) -> None:
    foreseen = chained(OSError(number, "No space left on device"))

    assert expected_error(foreseen) is foreseen


def test_a_held_lock_is_not_a_shortage() -> None:
    foreseen = chained(BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), hidden=True)

    assert expected_error(foreseen) is foreseen


def test_a_failed_run_is_reported_unchanged() -> None:
    failure = RunFailed("policy Mine: failed in mine.py:3")
    failure.__cause__ = MemoryError()

    assert expected_error(failure) is failure


def test_an_unexpected_error_is_a_machine_error_an_input_error_or_a_bug() -> None:
    assert isinstance(expected_error(OSError(errno.EIO, "Input/output error")), RunFailed)
    assert isinstance(expected_error(RecursionError()), InputError)
    assert expected_error(ZeroDivisionError()) is None


@pytest.mark.parametrize("error", [OSError("gone"), RecursionError(), OSError(errno.ENOENT, "No such file")])
def test_an_error_in_a_running_cluster_is_a_bug_unless_a_disk_is_the_cause(error: Exception) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    for one in (error, full):
        one.add_note("while an appointment was executed")

    assert expected_error(error) is None
    assert isinstance(expected_error(full), RunFailed)


def test_a_raised_bug_is_reported_unchanged() -> None:
    assert expected_error(Bug("an invariant")) is None


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOTDIR, errno.ENAMETOOLONG])
def test_a_path_that_cannot_be_opened_is_an_input_error(number: int) -> None:
    reported = expected_error(OSError(number, "some reason", "there/out"))

    assert isinstance(reported, InputError)
    assert reported.source == "there/out"
    assert reported.remedy == "check the path and its permissions"
