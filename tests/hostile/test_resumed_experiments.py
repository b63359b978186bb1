"""A resumed experiment detects damaged runs, reports them and runs them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import EXPERIMENT, run_in_process, write_study

ONE_BY_ONE = (*EXPERIMENT, "--jobs", "1")


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A folder with a completed experiment of two runs."""
    write_study(tmp_path, "policy:fcfs", "policy:sjf")
    assert run_in_process(tmp_path, *ONE_BY_ONE).returncode == 0
    return tmp_path


def results(folder: Path) -> bytes:
    return (folder / "out" / "results.csv").read_bytes()


def first_run(folder: Path) -> Path:
    return min((folder / "out" / "runs").iterdir())


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flatter(path: Path) -> None:
    """Change one digit of a result; the file keeps its size."""
    content = path.read_text()
    digit = max(place for place, letter in enumerate(content) if letter.isdigit())
    path.write_text(f"{content[:digit]}{(int(content[digit]) + 1) % 10}{content[digit + 1 :]}")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def turn_into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "name"),
    [
        (cut, "schedule.csv"),
        (flatter, "schedule.csv"),
        (empty, "schedule.csv"),
        (Path.unlink, "schedule.csv"),
        (turn_into_a_folder, "schedule.csv"),
        (cut, "fidelity.json"),
        (flatter, "jobs.csv"),
        (flatter, "journal.jsonl"),
    ],
)
def test_a_damaged_result_is_reported_and_its_run_repeated(done: Path, harm: Callable[[Path], None], name: str) -> None:
    before, run = results(done), first_run(done)
    harm(run / name)

    again = run_in_process(done, *ONE_BY_ONE)

    assert again.returncode == 0, again.stderr
    assert f"damaged: out/runs/{run.name}: {name} is not what the run wrote" in again.stderr
    assert results(done) == before
    assert (run / name).is_file()
    assert (done / "out" / "set-aside" / run.name).is_dir(), "nothing is thrown away"


@pytest.mark.parametrize("text", [b"", b"[]", b'{"batkube": "0.1.0", "result": "completed"}', b"[" * 9999])
def test_a_damaged_manifest_is_reported_and_its_run_repeated(done: Path, text: bytes) -> None:
    before, run = results(done), first_run(done)
    (run / "manifest.json").write_bytes(text)

    again = run_in_process(done, *ONE_BY_ONE)

    assert again.returncode == 0, again.stderr
    assert f"damaged: out/runs/{run.name}: manifest.json is missing, or is not what the run wrote" in again.stderr
    assert results(done) == before


@pytest.mark.parametrize("key", ["digest", "result", "real"])
def test_a_change_of_one_value_in_a_manifest_is_detected(done: Path, key: str) -> None:
    run = first_run(done)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, key: "something else"}))

    again = run_in_process(done, *ONE_BY_ONE)

    assert "damaged" in again.stderr
    assert again.returncode == 0


def test_a_run_damaged_twice_is_set_aside_twice(done: Path) -> None:
    run = first_run(done)
    for _ in range(2):
        cut(run / "schedule.csv")
        run_in_process(done, *ONE_BY_ONE)

    aside = sorted(path.name for path in (done / "out" / "set-aside").iterdir())

    assert aside == [run.name, f"{run.name}-2"]


def test_undamaged_runs_are_not_repeated(done: Path) -> None:
    run = first_run(done)
    (run / "notes.txt").write_text("of mine\n")
    written_ns = (run / "manifest.json").stat().st_mtime_ns

    again = run_in_process(done, *ONE_BY_ONE)

    assert (again.returncode, "damaged" in again.stderr) == (0, False)
    assert (run / "manifest.json").stat().st_mtime_ns == written_ns


def test_a_foreign_folder_at_the_place_of_a_run_is_set_aside_and_reported(done: Path) -> None:
    run = first_run(done)
    run.rename(done / "moved")
    run.mkdir()
    (run / "thesis.tex").write_text("years of work\n")

    again = run_in_process(done, *ONE_BY_ONE)

    assert "manifest.json is missing" in again.stderr
    assert (done / "out" / "set-aside" / run.name / "thesis.tex").read_text() == "years of work\n"
