"""Files are replaced atomically, and the targets of links are left alone."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from batkube.files.replacement import replace_on_success, write_atomically
from batkube.kernel.errors import InputError


def test_a_replaced_file_has_default_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "other").touch()

    write_atomically(tmp_path / "a", b"new")

    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["a", "other"]


def test_the_old_file_survives_a_failed_write(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def fail_in_the_middle() -> None:
        with replace_on_success(tmp_path / "a") as partial:
            partial.write_text("half")
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        fail_in_the_middle()

    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_is_replaced_and_its_target_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("years of work")
    (tmp_path / "a").symlink_to("thesis")

    write_atomically(tmp_path / "a", b"new")

    assert ((tmp_path / "a").read_text(), (tmp_path / "a").is_symlink()) == ("new", False)
    assert (tmp_path / "thesis").read_text() == "years of work"


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()

    write_atomically(pipe, b"new")
    reader.join(timeout=30)

    assert received == [b"new"]
    assert pipe.is_fifo()


def test_an_unusable_path_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        write_atomically(tmp_path / "nowhere" / "a", b"")
    with pytest.raises(InputError, match="is a folder"):
        write_atomically(tmp_path, b"")
