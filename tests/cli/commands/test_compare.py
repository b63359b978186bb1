"""`batkube compare --journal`: where runs part, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import answer_here, study

REFUSING = """
from collections.abc import Iterator
from batkube.policies import Decision, Policy, Reject, View

class Refusing(Policy):
    def decide(self, view: View) -> Iterator[Decision]:
        for job in list(view.queue):
            yield Reject(job, "closed")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs that agree, and one that rejects every job."""
    folder = study(tmp_path, policy_file=REFUSING)
    run = ("run", "--workload", "w.json", "--platform", "2x1", "--quiet")
    for name, scheduler in (("one", "policy:fcfs"), ("same", "policy:fcfs"), ("other", "policy:mine.py:Refusing")):
        assert answer_here(folder, *run, "--scheduler", scheduler, "--out", name).returncode == 0
    return folder


def test_runs_that_agree_are_said_to(folder: Path) -> None:
    result = answer_here(folder, "compare", "one", "same", "--journal")

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "one and same are identical, line by line\n"


def test_each_run_is_compared_with_the_baseline_and_shown_where_it_differs(folder: Path) -> None:
    result = answer_here(folder, "compare", "other", "one", "same", "--journal", "--baseline", "2")

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

    result = answer_here(folder, "compare", "one", "other", "--journal")

    assert result.returncode == 2
    assert "one: has no journal.jsonl" in result.stderr
