"""Programs get the same paths in every run, whatever the real paths of their folders are."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.programs.startup.program_folders import StableFolders


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "kubeconfig").write_text("here")
    return tmp_path / "files"


@pytest.mark.parametrize("inherits", [True, False])
def test_successive_programs_get_the_same_paths(files: Path, tmp_path: Path, inherits: bool) -> None:
    paths = []
    for _ in range(2):
        folders = StableFolders(files, tmp_path / "cache", inherits=inherits)
        paths.append((folders.files.program_path, folders.temporary))
        assert Path(folders.files.to_program_path(files / "kubeconfig")).read_text() == "here"
        (Path(folders.temporary) / "file").touch()
        folders.close_descriptors()
        folders.release()

    assert paths[0] == paths[1]
    assert not Path(paths[0][1], "file").exists()


def test_concurrent_programs_get_paths_of_the_same_length(files: Path, tmp_path: Path) -> None:
    programs = [StableFolders(files, tmp_path / "cache", inherits=False) for _ in range(12)]

    assert [Path(folders.temporary).parent.name for folders in programs] == [f"{number:03}" for number in range(1, 13)]

    programs[3].release()
    reused = StableFolders(files, tmp_path / "cache", inherits=False)
    assert reused.files.program_path == programs[3].files.program_path
    for folders in (*programs, reused):
        folders.release()
    assert not list((tmp_path / "cache").glob("runs/*/*"))


def test_real_paths_are_used_if_others_can_write_to_the_cache(files: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)

    folders = StableFolders(files, cache, inherits=False)

    assert folders.files.program_path == str(files)
    assert Path(folders.temporary).is_dir()
    folders.release()
    assert not Path(folders.temporary).exists()


def test_real_paths_are_used_if_the_cache_is_not_writable(files: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()

    folders = StableFolders(files, tmp_path / "cache", inherits=False)

    assert folders.files.program_path == str(files)
    folders.release()
