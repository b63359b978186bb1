"""`batkube compare`: tables, CSV, and the first line at which journals differ."""

from __future__ import annotations

import csv
import io
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.commands import run_in_process, write_study
from tests.conftest import REPOSITORY
from typer.testing import CliRunner

from batkube.cli.app import build_app
from batkube.cli.commands.compare import compare, print_comparison
from batkube.experiments.description.columns import number_columns
from batkube.kernel.errors import InputError
from batkube.outputs.measures.comparisons.run_comparison import compare_runs

if TYPE_CHECKING:
    from tests.run_folders import MakeRun

REJECT_ALL = """
from collections.abc import Iterator
from batkube.policies import Decision, Policy, Reject, View

class RejectAll(Policy):
    def decide(self, view: View) -> Iterator[Decision]:
        for job in list(view.queue):
            yield Reject(job, "closed")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two identical runs, and one that rejects every job."""
    folder = write_study(tmp_path, policy_file=REJECT_ALL)
    run = ("run", "--workload", "w.json", "--platform", "2x1", "--quiet")
    for name, scheduler in (("one", "policy:fcfs"), ("same", "policy:fcfs"), ("other", "policy:mine.py:RejectAll")):
        assert run_in_process(folder, *run, "--scheduler", scheduler, "--out", name).returncode == 0
    return folder


def test_identical_journals_are_reported_as_identical(folder: Path) -> None:
    result = run_in_process(folder, "compare", "one", "same", "--journal")

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "one and same are identical, line by line\n"


def test_the_first_difference_of_each_run_from_the_baseline_is_shown(folder: Path) -> None:
    result = run_in_process(folder, "compare", "other", "one", "same", "--journal", "--baseline", "2")

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "journal.jsonl: line 2 is the first that differs",
        '  both   {"t":0,"event":"submit","job":"w0!0"}',
        '  one    {"t":0,"event":"bind","job":"w0!0","machines":"0"}',
        '  one    {"t":0,"event":"start","job":"w0!0"}',
        '  one    {"t":1000000000,"event":"finish","job":"w0!0","state":"COMPLETED_SUCCESSFULLY"}',
        '  other  {"t":0,"event":"reject","job":"w0!0","reason":"closed"}',
        '  other  {"t":0,"event":"finish","job":"w0!0","state":"REJECTED"}',
        '  other  {"t":1000000000,"event":"submit","job":"w0!1"}',
        "  earlier lines about the same objects, in both runs:",
        '    {"t":0,"event":"submit","job":"w0!0"}',
        "one and same are identical, line by line",
    ]


def test_a_folder_without_a_journal_is_bad_input(folder: Path) -> None:
    (folder / "one" / "journal.jsonl").unlink()

    result = run_in_process(folder, "compare", "one", "other", "--journal")

    assert result.returncode == 2
    assert "one: has no journal.jsonl" in result.stderr


def test_the_documented_table_is_the_output_of_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "reference" / "cli-compare.md").read_text(encoding="utf-8")
    example = next(block for block in re.findall(r"```\n(.*?)```", page, re.DOTALL) if block.startswith("$ "))
    commands = re.findall(r"^\$ batkube (.*)$", example, re.MULTILINE)
    monkeypatch.chdir(tmp_path)

    results = [CliRunner().invoke(build_app(), shlex.split(command)) for command in commands]

    assert [result.exit_code for result in results] == [0, 0, 0, 0]
    output = [line.rstrip() for line in results[-1].stdout.splitlines()]
    documented = example.partition("$ batkube compare")[2].splitlines()[1:]
    assert [line for line in output if line] == [line for line in documented if line]


def test_the_piped_table_has_no_control_codes_and_is_not_cut(make_run: MakeRun) -> None:
    rows = [("1", 0, 10, 20, "0")]
    runs = [make_run(rows, name=f"a_rather_long_name_of_a_run_{number}") for number in range(6)]
    out = io.StringIO()

    print_comparison(compare_runs(runs), Console(file=out, width=80, highlight=False))

    text = out.getvalue()
    assert "\x1b" not in text
    assert "…" not in text
    assert all(f"a_rather_long_name_of_a_run_{number}" in text for number in range(6))
    lines = [line for line in text.splitlines() if "mean wait " in line]
    assert lines == [lines[0]]
    assert lines[0].split() == ["mean", "wait", "s", "10.00", *["10.00", "="] * 5]


def test_better_is_green_and_worse_is_red_on_a_terminal(make_run: MakeRun) -> None:
    out = io.StringIO()
    runs = [make_run([("1", 0, 10, 20, "0")], name="a"), make_run([("1", 0, 20, 30, "0")], name="b")]

    print_comparison(compare_runs(runs), Console(file=out, force_terminal=True, color_system="standard", width=200))

    assert "\x1b[31m+100.0\x1b[0m" in out.getvalue()


def test_the_csv_has_a_row_per_metric_and_a_column_per_run(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run([("1", 0, 10, 20, "0")], name="a"), make_run([("1", 0, 15, 25, "0")], name="b")]

    compare([run.path for run in runs], csv=tmp_path / "table.csv")

    with (tmp_path / "table.csv").open(newline="") as file:
        rows = {row["metric"]: row for row in csv.DictReader(file)}
    assert rows["mean_waiting_time"] == {"metric": "mean_waiting_time", "unit": "s", "a": "10.0", "b": "15.0"}
    assert rows["fairness_by_user"]["a"] == ""
    assert set(rows) - {"nb_completed_successfully"} <= {*number_columns()}
    assert "+50.0" in capsys.readouterr().out


def test_invalid_arguments_are_rejected(make_run: MakeRun, tmp_path: Path) -> None:
    path = make_run([("1", 0, 10, 20, "0")]).path

    with pytest.raises(InputError, match="at least two"):
        compare([path])
    with pytest.raises(InputError, match="3 is not between 1 and 2"):
        compare([path, path], baseline=3)
    with pytest.raises(InputError, match="does not exist"):
        compare([path, path], csv=tmp_path / "nowhere" / "x.csv")
