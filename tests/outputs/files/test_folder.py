"""The output folder is complete or absent, and other files are never changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.outputs.files.folder import OutputFolder


def write(folder: OutputFolder, text: str = "new", *, failed: bool = False) -> Path:
    with folder.writing():
        if failed:
            folder.protect_completed_run()
        folder.file("jobs.csv").write_text(text)
        folder.seal({"batkube": "0", "result": "failed" if failed else "completed"})
    return folder.path


def text_in(folder: Path) -> str:
    return (folder / "jobs.csv").read_text()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_has_the_permissions_of_any_new_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()

    write(OutputFolder(tmp_path / "out"))

    assert (tmp_path / "out").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert names_in(tmp_path) == ["other", "out"]


def test_a_partial_folder_of_a_killed_run_is_ignored(tmp_path: Path) -> None:
    partial = tmp_path / f".out.partial-{os.getpid()}"
    partial.mkdir()

    write(OutputFolder(tmp_path / "out"))

    assert text_in(tmp_path / "out") == "new"
    assert partial.is_dir()


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")

    write(OutputFolder(tmp_path / "out"))

    assert (tmp_path / "out").is_symlink()
    assert text_in(tmp_path / "disk") == "new"
    assert names_in(tmp_path) == ["disk", "out"]


def test_a_run_is_not_replaced_through_a_link(tmp_path: Path) -> None:
    write(OutputFolder(tmp_path / "disk"), "old")
    (tmp_path / "out").symlink_to("disk")

    with pytest.raises(InputError, match=f"name the folder itself: {tmp_path / 'disk'}"):
        OutputFolder(tmp_path / "out", force=True)

    assert text_in(tmp_path / "disk") == "old"


@pytest.mark.parametrize("target", ["nowhere", "out"])
def test_a_dangling_link_is_rejected_before_the_run(tmp_path: Path, target: str) -> None:
    (tmp_path / "out").symlink_to(target)

    with pytest.raises(InputError, match=f"is a link to {target}, which does not exist"):
        OutputFolder(tmp_path / "out")


def test_the_current_folder_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")

    for path in (".", "..", tmp_path / "a"):
        with pytest.raises(InputError, match="current folder"):
            OutputFolder(Path(path))


def test_a_failed_run_never_replaces_a_completed_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(OutputFolder(out), "completed")

    first = write(OutputFolder(out, force=True), "first failure", failed=True)
    second = write(OutputFolder(out, force=True), "second failure", failed=True)

    assert first == second == tmp_path / "out.failed"
    assert (text_in(out), text_in(second)) == ("completed", "second failure")
    assert names_in(tmp_path) == ["out", "out.failed"]


def test_a_failed_run_avoids_paths_without_a_failed_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(OutputFolder(out), "completed")
    write(OutputFolder(tmp_path / "out.failed"), "completed too")
    (tmp_path / "out.failed-2").write_text("a file")

    path = write(OutputFolder(out, force=True), "failure", failed=True)

    assert path == tmp_path / "out.failed-3"
    assert text_in(tmp_path / "out.failed") == "completed too"


@pytest.mark.parametrize("failed", [False, True])
def test_a_failed_run_is_replaced_by_any_other(tmp_path: Path, failed: bool) -> None:
    out = tmp_path / "out"
    assert write(OutputFolder(out), "failure", failed=True) == out

    assert write(OutputFolder(out, force=True), failed=failed) == out

    assert text_in(out) == "new"
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("x")])
def test_the_previous_run_stays_when_writing_fails(tmp_path: Path, error: BaseException) -> None:
    out = tmp_path / "out"
    write(OutputFolder(out), "old")
    folder = OutputFolder(out, force=True)

    with pytest.raises((InputError, KeyboardInterrupt, ValueError)), folder.writing():
        raise error

    assert text_in(out) == "old"
    assert names_in(tmp_path) == ["out"]


def test_files_that_appear_during_the_run_are_not_replaced(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path / "out", force=True)

    def write_thesis() -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.tex").write_text("years of work")

    with pytest.raises(InputError, match="not the output of a run"), folder.writing():
        write_thesis()

    assert names_in(tmp_path / "out") == ["thesis.tex"]
    assert names_in(tmp_path) == ["out"]
