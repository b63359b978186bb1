"""`batkube report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.outputs.report.reported_runs import MANIFEST, ROWS

from batkube.cli.main import main


def report(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["batkube", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_by_default_the_report_is_written_into_the_run_folder(
    make_run: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = make_run(ROWS, manifest=MANIFEST).path

    assert report(monkeypatch, folder) == 0
    assert capsys.readouterr().out == f"wrote {folder / 'report.html'}\n"
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["gone"], "does not exist"),
        (["run", "-o", "gone/report.html"], "the folder gone does not exist"),
        (["run", "-o", "run"], "is a folder"),
        (["run", "--figures", "figures"], "applies only to experiments"),
        (["broken"], "cannot be read as JSON"),
    ],
)
def test_invalid_arguments_print_one_message_and_exit_with_2(
    arguments: list[str],
    problem: str,
    make_run: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_run([("1", 0, None, None, "", {"final_state": "REJECTED"})], manifest=MANIFEST)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "experiment.json").write_text("{")
    monkeypatch.chdir(tmp_path)

    assert report(monkeypatch, *arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert problem in errors


def test_a_figure_with_an_unknown_column_prints_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [{"x": "scheduler", "y": "makspan"}]
    content = {"axes": [{"name": "scheduler", "values": ["a"]}], "figures": figures, "runs": [], "file": "study.yaml"}
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    (tmp_path / "results.csv").write_text("run,scheduler,seed,repeat,state,makespan\n")

    assert report(monkeypatch, tmp_path) == 2
    assert "study.yaml: figures[1].y.makspan: is not a column of numbers" in capsys.readouterr().err


def test_an_unknown_table_column_is_rejected_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"axes": [{"name": "scheduler", "values": ["a"]}], "runs": [], "file": "study.yaml"}
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    (tmp_path / "results.csv").write_text("run,scheduler,seed,repeat,state,makespan\n")

    assert report(monkeypatch, tmp_path, "--tables", tmp_path / "tables", "--columns", "makspan") == 2
    assert "--columns: makspan: is not a column of numbers" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"experiment.json", "results.csv"}
