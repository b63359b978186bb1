"""The report of one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from batkube.cli.main import main
from batkube.outputs.charts.inline_svg import inline_svg
from batkube.outputs.report.document import run_report, write_run_report
from batkube.outputs.results import Results
from report_pages import Page, read_page

MANIFEST: dict[str, Any] = {
    "batkube": "0.1.0",
    "command": ["batkube", "run", "--workload", "my jobs.json"],
    "scenario": {"seed": 7},
    "scheduler": "kube-scheduler@1.34.4",
    "resources": "machines",
    "seed": 7,
    "inputs": [{"path": "my jobs.json", "sha256": "cd" * 32}],
    "platform": {"machines": [{"name": "node-0", "cpu_milli": 1000}, {"name": "node-1", "cpu_milli": 1000}]},
    "jobs": 3,
    "result": "completed",
    "failure": None,
    "digest": "0123456789abcdef",
    "programs": [
        {"name": "kube-scheduler", "version": "v1.34.4", "serves": ["default-scheduler"], "sha256": "ef" * 32}
    ],
    "real": {
        "run_s": 1.5,
        "cpu_s": 0.5,
        "peak_memory_bytes": 2**25,
        "programs": [{"cpu_s": 0.75, "peak_memory_bytes": 2**26}],
    },
}
ROWS = [
    ("1", 0, 0, 100, "0", {"user": "ada"}),
    ("2", 0, 0, 50, "1", {"user": "bob"}),
    ("3", 0, 100, 300, "0-1", {"user": "bob"}),
]


def pod(name: str, **cells: object) -> dict[str, object]:
    return {
        "pod": name,
        "job_id": "1",
        "workload_name": "w0",
        "created": 0,
        "phase": "Succeeded",
        "attempts": 1,
        **cells,
    }


def told(results: Results) -> Page:
    page = read_page(run_report(results))
    assert page.problems == []
    return page


def test_a_run_is_told_with_its_numbers_and_all_that_repeats_it(make_run: Any) -> None:  # noqa: ANN401
    results = make_run(ROWS, manifest=MANIFEST)
    (results.path / "fidelity.json").write_text("[]")

    page = told(results)

    numbers = {row[0]: row[1] for row in page.tables[0][1:]}
    assert (numbers["makespan"], numbers["mean wait"], numbers["jobs that succeeded"]) == ("300.00", "33.33", "3")
    for words in (
        "3 of 3",
        "5 min",
        "batkube run --workload 'my jobs.json'",
        "0123456789abcdef",
        "cd" * 32,
        "ef" * 32,
        "v1.34.4",
        "1.50 s real",
        "Everything that the run requested is modelled",
        "job 3 (w0)",  # the story under the pointer
        "ada",
    ):
        assert words in page.text, words
    assert page.tags.count("svg") == 2


def test_pods_that_were_not_placed_are_told_by_reason(make_run: Any) -> None:  # noqa: ANN401
    short = "0/16 nodes are available: 16 Insufficient cpu."
    pods = [
        pod("p1", scheduled=0, started=0, finished=100),
        pod("p2", scheduled=30, started=30, finished=60, attempts=4, last_reason=short),
        pod("p3", scheduled=50, started=50, finished=60, attempts=6, last_reason=short.replace("16", "12")),
        pod("p4", finished=90, phase="Failed", attempts=9, last_reason="no node has a <GPU>"),
    ]

    page = told(make_run(ROWS, manifest=MANIFEST, pods=pods))

    assert "Of 4 pods 1 were never placed, 2 were placed after more than one attempt." in page.text
    never, retried = (table for table in page.tables if table[0][0] == "last reason")
    assert never[1] == ["no node has a <GPU>", "1", "9", "90.00", "p4"]
    assert retried[1] == [short, "2", "6", "50.00", "p2, p3"]


def test_jobs_of_many_pods_are_told_by_size_with_what_they_waited_for(make_run: Any) -> None:  # noqa: ANN401
    gang = {"submitted_as": "pod-group", "requested_number_of_resources": 2}
    rows = [
        ("1", 0, 0, 100, "0", {"submitted_as": "pod-group", "member_wait": 0}),
        ("2", 0, 100, 200, "0-1", {**gang, "member_wait": 90, "admitted_time": 7, "evictions": 1}),
        ("3", 0, 200, 300, "0-1", {**gang, "member_wait": 0}),
    ]

    page = told(make_run(rows, manifest=MANIFEST))

    assert "Jobs were submitted as pod-group. None was in a deadlock." in page.text
    by_size, longest = (table for table in page.tables if table[0][0] in ("pods", "job"))
    assert by_size[1:] == [["1", "1", "0.00", "0.00", "0"], ["2 to 4", "2", "150.00", "45.00", "1"]]
    assert longest[1:] == [["w0!2", "2", "1 min 30 s", "1 min 40 s"]]
    for words in ("admitted by its scheduler at 7 s", "held nodes for 1 min 30 s", "evictions 1"):
        assert words in page.text, words


def test_a_run_that_failed_says_so_first(make_run: Any) -> None:  # noqa: ANN401
    failed = {**MANIFEST, "result": "failed", "failure": "kube-scheduler ended\nwith code 2", "jobs": 5}

    page = told(make_run(ROWS, manifest=failed))

    assert "This run failed: 2 of its 5 jobs have no outcome." in page.text
    assert page.text.index("with code 2") < page.text.index("makespan")


def test_a_bare_jobs_file_has_a_report_with_what_it_tells(make_run: Any, tmp_path: Path) -> None:  # noqa: ANN401
    jobs = make_run(ROWS).jobs_path.rename(tmp_path / "theirs_jobs.csv")

    target = write_run_report(jobs, tmp_path / "report.html")

    page = read_page(target.read_text(encoding="utf-8"))
    assert page.problems == []
    assert "it is unknown how they were run" in page.text
    assert target.read_bytes() == write_run_report(jobs, tmp_path / "again.html").read_bytes()


def test_a_run_without_a_finished_job_has_a_report_too(make_run: Any) -> None:  # noqa: ANN401
    page = told(make_run([("1", 0, None, None, "", {"final_state": "REJECTED"})], manifest=MANIFEST))

    assert "0 of 1" in page.text
    assert "Not drawn: nothing ran" in page.text


def test_names_within_a_drawing_are_its_own_and_labels_stay_as_they_are() -> None:
    svg = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="1"><metadata>x</metadata>'
        '<g id="a" style="fill: #222222; clip-path: url(#b)"><use xlink:href="#a"/>'
        '<text style="font: 9px \'DejaVu Sans\'">id="a" #222222</text></g></svg>'
    )

    made = inline_svg(svg, prefix="p", title="A < B", description="words")

    assert made == (
        '<svg width="1" role="img" aria-labelledby="p-title p-desc"><title id="p-title">A &lt; B</title>'
        '<desc id="p-desc">words</desc><g id="p-a" style="fill: var(--ink, #222222); clip-path: url(#p-b)">'
        "<use href=\"#p-a\"/><text style=\"font: 9px 'DejaVu Sans', Verdana, 'Bitstream Vera Sans', 'Segoe UI', "
        'Arial, sans-serif">id="a" #222222</text></g></svg>'
    )


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["batkube", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_command_writes_beside_the_run_unless_told(
    make_run: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = make_run(ROWS, manifest=MANIFEST).path

    assert command(monkeypatch, folder) == 0
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
def test_wrong_use_is_one_message_and_exit_code_2(
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

    assert command(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert problem in said


def test_a_figure_that_asks_for_what_is_not_there_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [{"x": "scheduler", "y": "makspan"}]
    content = {"axes": [{"name": "scheduler", "values": ["a"]}], "figures": figures, "runs": [], "file": "study.yaml"}
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    (tmp_path / "results.csv").write_text("run,scheduler,seed,repeat,state,makespan\n")

    assert command(monkeypatch, tmp_path) == 2
    assert "study.yaml: figures[1].y.makspan: is not a column of numbers" in capsys.readouterr().err


def test_a_column_that_tables_cannot_have_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"axes": [{"name": "scheduler", "values": ["a"]}], "runs": [], "file": "study.yaml"}
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    (tmp_path / "results.csv").write_text("run,scheduler,seed,repeat,state,makespan\n")

    assert command(monkeypatch, tmp_path, "--tables", tmp_path / "tables", "--columns", "makspan") == 2
    assert "--columns: makspan: is not a column of numbers" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"experiment.json", "results.csv"}
