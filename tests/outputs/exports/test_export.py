"""The same run gives the same bytes in every format, and nothing is replaced by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import run_in_process
from tests.outputs.playback.saturated_runs import EVENTS, a_run

from batkube.kernel.errors import InputError
from batkube.outputs.exports.export import save_export
from batkube.outputs.exports.formats import ExportFormat, format_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_run(tmp_path_factory.mktemp("export") / "out", events=EVENTS)


def content(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


@pytest.mark.parametrize("export_format", ExportFormat)
def test_two_runs_of_one_scenario_give_the_same_bytes(
    folder: Path, tmp_path: Path, export_format: ExportFormat
) -> None:
    again = a_run(tmp_path / "again", events=EVENTS)
    for run, name in ((folder, "one"), (again, "two")):
        save_export(run, tmp_path / name, export_format)

    assert content(tmp_path / "one") == content(tmp_path / "two")


@pytest.mark.parametrize("name", ["x.pftrace", "x.perfetto-trace", "x.json", "x.parquet"])
def test_a_file_is_replaced_with_force_only(folder: Path, tmp_path: Path, name: str) -> None:
    def export(*more: str) -> int:
        return int(run_in_process(tmp_path, "export", str(folder), "-o", name, *more).returncode)

    assert export() == 0
    before = content(tmp_path / name)
    assert export() == 2
    assert export("--force") == 0
    assert content(tmp_path / name) == before


def test_a_folder_with_files_of_the_user_is_not_replaced_by_parquet_files(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    save_export(folder, target, ExportFormat.PARQUET)
    (target / "notes.txt").write_text("mine")

    with pytest.raises(InputError, match=r"notes\.txt"):
        save_export(folder, target, ExportFormat.PARQUET, force=True)
    assert (target / "notes.txt").read_text() == "mine"


def test_the_format_may_differ_from_the_suffix(folder: Path, tmp_path: Path) -> None:
    result = run_in_process(tmp_path, "export", str(folder), "-o", "trace", "--format", "chrome")

    assert (result.returncode, result.stdout) == (0, "wrote trace\n")
    assert (tmp_path / "trace").read_bytes().startswith(b'{"displayTimeUnit"')


@pytest.mark.parametrize("name", ["x.svg", "x", "x.json.gz"])
def test_a_suffix_without_a_format_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"\.pftrace, \.perfetto-trace, \.json, \.parquet, or add --format"):
        format_of(Path(name))


@pytest.mark.parametrize("name", ["x.pftrace", "x.json", "x.parquet"])
def test_what_is_not_a_run_gets_one_message(tmp_path: Path, folder: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    study = tmp_path / "study"
    (study / "runs").mkdir(parents=True)
    (study / "runs" / "0001").symlink_to(folder)
    (study / "experiment.json").write_text("{}")
    without_journal = a_run(tmp_path / "short", outputs=["pods.csv"])

    problems = {
        "missing": "missing: does not exist",
        "empty": "empty: is not a run's output folder",
        "study": "is the folder of an experiment, not of a run",
        str(without_journal): "journal.jsonl was left out of this run",
    }
    for run, problem in problems.items():
        result = run_in_process(tmp_path, "export", run, "-o", name)
        assert result.returncode == 2
        assert problem in result.stderr
        assert "Traceback" not in result.stderr
    assert "runs/0001" in run_in_process(tmp_path, "export", "study", "-o", name).stderr


def test_an_export_into_the_folder_of_its_run_belongs_to_it(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "out")
    save_export(folder, folder / "trace.pftrace", ExportFormat.PERFETTO)

    a_run(folder, force=True)  # replaces the whole folder
    assert not (folder / "trace.pftrace").exists()


def test_a_missing_folder_of_the_destination_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        save_export(folder, tmp_path / "no" / "x.json", ExportFormat.CHROME)
