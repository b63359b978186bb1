"""Files of others: looking at an experiment runs nothing of it, and a page made of a run runs nothing either."""

from __future__ import annotations

import csv
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.commands import RUN, WORKLOAD, answer_here, study

from batkube.outputs.results import Results


@pytest.mark.parametrize(
    "policy",
    [
        "open('was-here', 'w')\nclass P: pass\n",
        "from pathlib import Path\nclass P:\n    x = Path('was-here').touch()\n",
    ],
)
def test_a_dry_run_runs_nothing_of_a_policy_file(tmp_path: Path, policy: str) -> None:
    study(tmp_path)
    (tmp_path / "p.py").write_text(policy)
    (tmp_path / "e.yaml").write_text("base: {workload: w.json, platform: 2x1, scheduler: 'policy:./p.py:P'}\n")

    listed = answer_here(tmp_path, "experiment", "e.yaml", "--out", "out", "--dry-run")

    assert (listed.returncode, listed.stdout.startswith("to do")) == (0, True)
    assert not (tmp_path / "was-here").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("class P(:\n", "line 1: is not valid Python"),
        ("x = '\0'\n", "is not valid Python"),
        ("(" * 9_000, "is not valid Python"),
    ],
)
def test_a_dry_run_still_says_what_is_wrong_with_a_policy_file(tmp_path: Path, policy: str, told: str) -> None:
    study(tmp_path)
    (tmp_path / "p.py").write_text(policy)
    (tmp_path / "e.yaml").write_text("base: {workload: w.json, platform: 2x1, scheduler: 'policy:./p.py:P'}\n")

    listed = answer_here(tmp_path, "experiment", "e.yaml", "--out", "out", "--dry-run")

    assert (listed.returncode, told in listed.stderr) == (2, True)


class Page(HTMLParser):
    """What of a page could act: its policy, its scripts, and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.policies: list[str | None] = []
        self.active: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(given["content"])
        if tag in ("script", "iframe", "object", "embed", "link", "base", "form"):
            self.active.append(tag)
        self.active += [name for name in given if name.startswith("on")]


def test_the_page_of_a_gantt_chart_has_a_policy_that_forbids_everything(tmp_path: Path) -> None:
    study(tmp_path)
    jobs = [{**job, "id": "<script>alert(1)</script>"} for job in WORKLOAD["jobs"][:1]]  # type: ignore[index]
    (tmp_path / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    assert answer_here(tmp_path, *RUN).returncode == 0

    drawn = answer_here(tmp_path, "gantt", "out", "-o", "g.html", "--title", "<img src=x onerror=alert(1)>")

    page = Page((tmp_path / "g.html").read_text())
    assert drawn.returncode == 0, drawn.stderr
    assert page.policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert page.active == []


def test_names_that_begin_a_formula_are_kept_as_they_are(tmp_path: Path) -> None:
    """Job ids are data: who reads the file back gets the very name. The reference says what to do in a spreadsheet."""
    study(tmp_path)
    names = ["=1+1", "+1", "-1", "@SUM(A1)"]
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "d"} for name in names]
    (tmp_path / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))

    assert answer_here(tmp_path, *RUN).returncode == 0

    with (tmp_path / "out" / "jobs.csv").open(newline="") as file:
        assert sorted(row["job_id"] for row in csv.DictReader(file)) == sorted(names)
    assert sorted(Results(tmp_path / "out").jobs["job_id"]) == sorted(names)
