"""Files of others: listing an experiment executes none of its code, and pages of runs contain no active content."""

from __future__ import annotations

import csv
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.commands import RUN, WORKLOAD, run_in_process, write_study

from batkube.outputs.results import Results


@pytest.mark.parametrize(
    "policy",
    [
        "open('was-here', 'w')\nclass P: pass\n",
        "from pathlib import Path\nclass P:\n    x = Path('was-here').touch()\n",
    ],
)
def test_a_dry_run_does_not_execute_a_policy_file(tmp_path: Path, policy: str) -> None:
    write_study(tmp_path)
    (tmp_path / "p.py").write_text(policy)
    (tmp_path / "e.yaml").write_text("base: {workload: w.json, platform: 2x1, scheduler: 'policy:./p.py:P'}\n")

    listed = run_in_process(tmp_path, "experiment", "e.yaml", "--out", "out", "--dry-run")

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
def test_a_dry_run_reports_syntax_errors_of_a_policy_file(tmp_path: Path, policy: str, told: str) -> None:
    write_study(tmp_path)
    (tmp_path / "p.py").write_text(policy)
    (tmp_path / "e.yaml").write_text("base: {workload: w.json, platform: 2x1, scheduler: 'policy:./p.py:P'}\n")

    listed = run_in_process(tmp_path, "experiment", "e.yaml", "--out", "out", "--dry-run")

    assert (listed.returncode, told in listed.stderr) == (2, True)


DELAY = {"type": "delay", "delay": 1}


class Page(HTMLParser):
    """The active parts of a page: its policy, scripts and references."""

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


def test_the_page_of_a_gantt_chart_forbids_all_active_content(tmp_path: Path) -> None:
    write_study(tmp_path)
    jobs = [{**job, "id": "<script>alert(1)</script>"} for job in WORKLOAD["jobs"][:1]]  # type: ignore[index]
    (tmp_path / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    assert run_in_process(tmp_path, *RUN).returncode == 0

    drawn = run_in_process(tmp_path, "gantt", "out", "-o", "g.html", "--title", "<img src=x onerror=alert(1)>")

    page = Page((tmp_path / "g.html").read_text())
    assert drawn.returncode == 0, drawn.stderr
    assert page.policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert page.active == []


def test_names_that_look_like_formulas_are_unchanged(tmp_path: Path) -> None:
    """Job ids are data, so readers must get the exact names. The reference explains what to do in a spreadsheet."""
    write_study(tmp_path)
    names = ["=1+1", "+1", "-1", "@SUM(A1)"]
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "d"} for name in names]
    (tmp_path / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))

    assert run_in_process(tmp_path, *RUN).returncode == 0

    with (tmp_path / "out" / "jobs.csv").open(newline="") as file:
        assert sorted(row["job_id"] for row in csv.DictReader(file)) == sorted(names)
    assert sorted(Results(tmp_path / "out").jobs["job_id"]) == sorted(names)


@pytest.mark.parametrize("name", [r"$\catcode$", "$$", "$x^$", "\\input{x}", "{", "%"])
def test_names_that_look_like_mathematics_are_drawn_as_text(tmp_path: Path, name: str) -> None:
    hosts = "".join(f'<host id="{host}" speed="1Gf"/>' for host in (name, "a"))
    master = '<host id="master_host" speed="1Gf"><prop id="role" value="master"/></host>'
    (tmp_path / "p.xml").write_text(
        f'<platform version="4.1"><zone id="z" routing="Full">{master}{hosts}</zone></platform>'
    )
    job = {"id": name, "subtime": 0, "res": 1, "profile": name, "user": name}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 2, "jobs": [job], "profiles": {name: DELAY}}))
    assert run_in_process(tmp_path, *RUN, "--platform", "p.xml").returncode == 0

    for arguments in (
        ("gantt", "out", "-o", "g.pdf", "--by", "profile", "--title", name),
        ("gantt", "out", "-o", "g.svg", "--by", "user"),
        ("gantt", "out", "-o", "g.html"),
        ("chart", "states", "out", "-o", "c.pdf"),
        ("report", "out", "-o", "r.html"),
    ):
        drawn = run_in_process(tmp_path, *arguments)
        assert drawn.returncode == 0, drawn.stderr
