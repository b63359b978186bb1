"""Files that contain secrets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from batkube.files.private import write_private


@pytest.mark.parametrize("content", ["secret", b"secret"])
def test_a_private_file_is_readable_only_by_its_owner_under_any_umask(tmp_path: Path, content: str | bytes) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "key", content)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert (tmp_path / "key").read_text() == "secret"


def test_replacing_an_open_file_leaves_its_readers_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o666)

    with path.open() as reader:
        write_private(path, "secret")
        assert reader.read() == "old"

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "secret"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")

    write_private(tmp_path / "key", "secret")

    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "key").is_symlink()
