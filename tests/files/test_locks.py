"""Lock files exclude other processes until they are closed."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from batkube.files.locks import open_lock_file, try_lock, wait_for_lock


def test_lock_has_one_holder_until_its_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with open_lock_file(path) as first, open_lock_file(path) as second:
        assert try_lock(first)
        assert not try_lock(second)

        first.close()

        wait_for_lock(second)
        with open_lock_file(path) as third:
            assert not try_lock(third)


def test_existing_lock_file_is_not_truncated(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("pid 1")

    with open_lock_file(path) as file:
        assert try_lock(file)

    assert path.read_text() == "pid 1"


def test_symbolic_link_is_not_a_lock_file(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "lock").symlink_to(target)

    with pytest.raises(OSError, match="symbolic link"):
        open_lock_file(tmp_path / "lock")


def test_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    with open_lock_file(tmp_path / "lock") as file, pytest.raises(OSError, match="not supported"):
        try_lock(file)
