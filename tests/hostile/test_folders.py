"""No command removes, moves or overwrites files that it did not write itself."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import RUN, command, forbid_file_growth, run_batkube, run_in_process, write_study

THESIS = "years of work\n"
EXPERIMENT = ("experiment", "e.yaml", "--jobs", "1", "--no-report")
#: Signals in the middle of a run that it has begun, and waits.
WAITING = """
import time
from batkube.policies.interface import Policy
class Waiting(Policy):
    def decide(self, view):
        print("here", flush=True)
        time.sleep(60)
        yield from ()
"""
WAIT = ("--scheduler", "policy:./mine.py:Waiting")
FOREIGN_MANIFEST = '{"name": "my web page", "files": {"thesis.tex": null}}'


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with inputs, in which commands are executed."""
    return write_study(tmp_path, "policy:fcfs", "policy:sjf", policy_file=WAITING)


def lay_thesis(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    thesis = folder / "thesis.tex"
    thesis.write_text(THESIS)
    return thesis


def finished(desk: Path, *words: str) -> None:
    result = run_in_process(desk, *words)
    assert result.returncode == 0, result.stderr


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if ".partial" in path.name)


@pytest.mark.parametrize("words", [RUN, ("serve", "--bare"), EXPERIMENT])
@pytest.mark.parametrize("name", ["manifest.json", "experiment.json", ".lock"])
def test_a_foreign_folder_with_one_of_our_file_names_is_not_replaced(desk: Path, words: tuple[str], name: str) -> None:
    thesis = lay_thesis(desk / "out")
    (desk / "out" / name).write_text(FOREIGN_MANIFEST)

    result = run_batkube(desk, *words, "--out", "out", "--force")

    assert result.returncode == 2
    assert thesis.read_text() == THESIS
    assert (desk / "out" / name).read_text() == FOREIGN_MANIFEST
    assert sorted(path.name for path in (desk / "out").iterdir()) == sorted([name, "thesis.tex"])


@pytest.mark.parametrize("name", ["experiment.json", ".lock"])
def test_an_experiment_does_not_write_into_a_foreign_folder(desk: Path, name: str) -> None:
    lay_thesis(desk / "out")
    (desk / "out" / name).write_text(FOREIGN_MANIFEST)

    result = run_in_process(desk, *EXPERIMENT, "--out", "out")

    assert (result.returncode, "not the folder of an experiment" in result.stderr) == (2, True)
    assert sorted(path.name for path in (desk / "out").iterdir()) == sorted([name, "thesis.tex"])


@pytest.mark.parametrize("place", [".", "chapters", "scheduler"])
def test_a_run_folder_with_a_foreign_file_is_not_replaced(desk: Path, place: str) -> None:
    finished(desk, *RUN)
    thesis = lay_thesis(desk / "out" / place)
    before = (desk / "out" / "manifest.json").read_bytes()

    result = run_in_process(desk, *RUN, "--force")

    named = "thesis.tex" if place == "." else f"{place}/"
    assert (result.returncode, f"no run wrote, so it is not removed: {named}\n" in result.stderr) == (2, True)
    assert thesis.read_text() == THESIS
    assert (desk / "out" / "manifest.json").read_bytes() == before


def test_a_modified_result_is_not_replaced(desk: Path) -> None:
    finished(desk, *RUN)
    (desk / "out" / "jobs.csv").write_text(THESIS)

    result = run_in_process(desk, *RUN, "--force")

    assert (result.returncode, "modified after the run, so it is not removed: jobs.csv" in result.stderr) == (
        2,
        True,
    )
    assert (desk / "out" / "jobs.csv").read_text() == THESIS


@pytest.mark.parametrize(
    "edit",
    [
        lambda manifest: manifest["files"].update({"thesis.tex": None}),
        lambda manifest: manifest["files"].update({"../thesis.tex": None, "../": None}),
        lambda manifest: manifest.pop("seal"),
        lambda manifest: manifest.pop("files"),
        lambda manifest: manifest.update(files=["thesis.tex"]),
    ],
)
def test_an_edited_list_of_files_is_rejected(desk: Path, edit: object) -> None:
    finished(desk, *RUN)
    inside, beside = lay_thesis(desk / "out"), lay_thesis(desk)
    manifest = json.loads((desk / "out" / "manifest.json").read_text())
    edit(manifest)  # type: ignore[operator]
    (desk / "out" / "manifest.json").write_text(json.dumps(manifest))

    result = run_in_process(desk, *RUN, "--force")

    assert (result.returncode, "manifest.json: was edited" in result.stderr) == (2, True)
    assert inside.read_text() == beside.read_text() == THESIS


def test_nothing_is_removed_through_links(desk: Path) -> None:
    """The folder itself, a file of the run and a folder of the run are links in turn."""
    finished(desk, *RUN, "--out", "disk")
    (desk / "out").symlink_to("disk")
    thesis = lay_thesis(desk / "chapters")

    behind = run_in_process(desk, *RUN, "--force")
    (desk / "disk" / "jobs.csv").unlink()
    (desk / "disk" / "jobs.csv").symlink_to(thesis)
    file = run_in_process(desk, *RUN, "--out", "disk", "--force")
    (desk / "disk" / "jobs.csv").unlink()
    (desk / "disk" / "scheduler").symlink_to(thesis.parent)
    folder = run_in_process(desk, *RUN, "--out", "disk", "--force")

    assert [one.returncode for one in (behind, file, folder)] == [2, 2, 2]
    assert "is a link to disk, and nothing is removed through a link" in behind.stderr
    assert "jobs.csv" in file.stderr
    assert "no run wrote, so it is not removed: scheduler\n" in folder.stderr
    assert thesis.read_text() == THESIS


def test_an_unmodified_run_is_replaced_with_its_reports_and_charts(desk: Path) -> None:
    finished(desk, *RUN)
    finished(desk, "report", "out")
    finished(desk, "gantt", "out", "-o", "out/gantt.html")

    finished(desk, *RUN, "--force")

    assert not (desk / "out" / "report.html").exists()
    assert not (desk / "out" / "gantt.html").exists()
    assert not left_behind(desk)


def test_a_foreign_report_is_replaced_only_if_named(desk: Path) -> None:
    finished(desk, *RUN)
    page = desk / "out" / "report.html"
    page.write_text(THESIS)

    refused = run_in_process(desk, "report", "out")
    kept = page.read_text()
    finished(desk, "report", "out", "-o", "out/report.html")
    finished(desk, "report", "out")

    assert (refused.returncode, kept) == (2, THESIS)
    assert page.read_text() != THESIS


def test_an_output_file_replaces_a_link_and_not_its_target(desk: Path) -> None:
    finished(desk, *RUN)
    thesis = lay_thesis(desk / "chapters")
    for name in ("fit.svg", "page.html", "w2.json"):
        (desk / name).symlink_to(thesis)

    finished(desk, "gantt", "out", "-o", "fit.svg")
    finished(desk, "report", "out", "-o", "page.html")
    finished(desk, "workload", "convert", "w.json", "-o", "w2.json", "--force")

    assert thesis.read_text() == THESIS
    assert not any((desk / name).is_symlink() for name in ("fit.svg", "page.html", "w2.json"))


def test_an_experiment_removes_only_its_runs(desk: Path) -> None:
    finished(desk, *EXPERIMENT, "--out", "out")
    beside = [lay_thesis(desk / "out" / place) for place in (".", "runs", "runs/mine", "failures", "set-aside")]

    finished(desk, *EXPERIMENT, "--out", "out", "--force")

    assert [thesis.read_text() for thesis in beside] == [THESIS] * len(beside)


def test_force_removes_nothing_if_a_run_contains_a_foreign_file(desk: Path) -> None:
    finished(desk, *EXPERIMENT, "--out", "out")
    runs = sorted((desk / "out" / "runs").iterdir())
    thesis = lay_thesis(runs[1])

    result = run_in_process(desk, *EXPERIMENT, "--out", "out", "--force")

    assert (result.returncode, "not removed: thesis.tex" in result.stderr) == (2, True)
    assert thesis.read_text() == THESIS
    assert all((run / "jobs.csv").is_file() for run in runs)


@pytest.mark.parametrize("place", ["out", "out/runs"])
def test_an_experiment_removes_nothing_through_links(desk: Path, place: str) -> None:
    finished(desk, *EXPERIMENT, "--out", "out")
    (desk / place).rename(desk / "disk")
    (desk / place).symlink_to(desk / "disk")
    before = sorted(path for path in (desk / "disk").rglob("jobs.csv"))

    result = run_in_process(desk, *EXPERIMENT, "--out", "out", "--force")

    assert (result.returncode, "nothing is removed through a link" in result.stderr) == (2, True)
    assert sorted(path for path in (desk / "disk").rglob("jobs.csv")) == before


def test_a_lock_file_that_is_a_link_is_not_followed(desk: Path) -> None:
    finished(desk, *EXPERIMENT, "--out", "out")
    thesis = lay_thesis(desk / "chapters")
    (desk / "out" / ".lock").unlink()
    (desk / "out" / ".lock").symlink_to(thesis)

    result = run_in_process(desk, *EXPERIMENT, "--out", "out")

    assert result.returncode == 2
    assert thesis.read_text() == THESIS


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_files_of_a_killed_run_are_removed_by_the_next_command(desk: Path, number: signal.Signals) -> None:
    waiting = command(*RUN, *WAIT, "--out", "killed")
    with subprocess.Popen(waiting, cwd=desk, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        at_work = left_behind(desk)
        finished(desk, *RUN, "--out", "first")
        spared = left_behind(desk)
        process.send_signal(number)

    finished(desk, *RUN, "--out", "second")

    assert len(at_work) == 1
    assert spared == at_work, "a run that goes on was swept"
    assert not left_behind(desk)


def test_foreign_partial_folders_are_not_removed(desk: Path) -> None:
    """Cases: Batkube's name; its name and a list; a link; its list, but with more files than listed."""
    waiting = command(*RUN, *WAIT, "--out", "killed")
    with subprocess.Popen(waiting, cwd=desk, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.kill()
    (killed,) = (desk / name for name in left_behind(desk))
    by_name = lay_thesis(desk / ".out.partial-abcdefgh" / "new")
    with_a_list = lay_thesis(desk / ".out.partial-12345678" / "new")
    (with_a_list.parent.parent / "files.txt").write_text("my files:\nthesis.tex\n")
    linked = lay_thesis(desk / "chapters")
    (desk / ".out.partial-_links__").symlink_to(linked.parent)
    inside = lay_thesis(killed / "new")

    finished(desk, *RUN)

    assert [thesis.read_text() for thesis in (by_name, with_a_list, linked, inside)] == [THESIS] * 4
    assert not (killed / "new" / "journal.jsonl").exists()


def test_a_run_killed_during_its_replacement_leaves_the_old_one(desk: Path) -> None:
    """Between the two renames the old run has a temporary name; the next command restores it."""
    finished(desk, *RUN)
    before = (desk / "out" / "manifest.json").read_bytes()
    program = """
import os, signal
from pathlib import Path
rename = Path.rename
def rename_and_die(self, target):
    rename(self, target)
    if target.name == "old":
        os.kill(os.getpid(), signal.SIGKILL)
Path.rename = rename_and_die
"""
    run_batkube(desk, *RUN, "--force", program=program)
    assert not (desk / "out").exists()

    finished(desk, *RUN, "--out", "elsewhere")

    assert (desk / "out" / "manifest.json").read_bytes() == before
    assert not left_behind(desk)


@pytest.mark.parametrize("words", [("serve", "--bare"), EXPERIMENT, RUN])
def test_a_full_disk_for_temporary_files_causes_one_message(desk: Path, words: tuple[str]) -> None:
    result = run_batkube(desk, *words, "--out", "out", prepare=forbid_file_growth)

    assert result.returncode in (1, 2)
    assert not (desk / "out" / "manifest.json").exists()
    assert not left_behind(desk)


def test_a_python_run_without_space_for_temporary_files_is_an_input_error(desk: Path) -> None:
    script = "import batkube; batkube.run(workload='w.json', platform='2x1')"

    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=desk,
        preexec_fn=forbid_file_growth,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert "InputError: $TMPDIR: temporary files cannot be written" in result.stderr
