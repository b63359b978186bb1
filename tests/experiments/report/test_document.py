"""The report of an experiment: its tables, remarks and HTML."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_in_process
from tests.experiments.conftest import Study

import batkube
from batkube.cli.main import main
from batkube.experiments.report.document import report_page, write_report
from batkube.experiments.report.gantt_charts import representative_runs
from batkube.experiments.report.grid_points import grid_points, marks_of_best
from batkube.experiments.report.paper_tables import write_paper_tables
from batkube.experiments.results.findings import read_findings
from batkube.experiments.running.worker_pool import InlineExecutor, worker_pool
from batkube.kernel.errors import InputError
from batkube.outputs.measures.metric_columns import column_of
from report_pages import Page, read_page, write_experiment

NASTY = '</title><script>alert("1")</script> $\\frac{1}{0}$ <b>&amp;\x00 ' + "'\"`"


def page_of(folder: Path) -> Page:
    """Return the report of a folder, which must be well-formed."""
    page = read_page(report_page(read_findings(folder), InlineExecutor()))
    assert page.problems == []
    return page


def runs_of(scheduler: str, makespans: list[float], **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [{"scheduler": scheduler, "seed": seed, "makespan": span, **more} for seed, span in enumerate(makespans)]


def test_the_report_of_a_real_experiment_is_one_page_and_reproducible(study: Study) -> None:
    file = study.file(
        title="Two & two", description="Which is better?", axes={"scheduler": ["policy:fcfs", "policy:sjf"]}, seeds=2
    )
    batkube.experiment(file, study.out)

    target = write_report(study.out)
    page = read_page(target.read_text(encoding="utf-8"))

    assert target == study.out / "report.html"
    assert page.problems == []
    for words in ("Two & two", "Which is better?", "Everything that the runs requested is modelled", "seeds0, 1"):
        assert words in page.text
    assert page.tables[0][1][:2] == ["policy:fcfs", "1 of 2"]
    digests = [run["digest"] for run in json.loads((study.out / "experiment.json").read_text())["runs"]]
    assert all(digest[:12] in page.text for digest in digests)
    assert page.tags.count("svg") == 5  # three figures and two Gantt charts
    again = target.read_bytes()
    assert write_report(study.out, study.folder / "again.html").read_bytes() == again
    with worker_pool(2) as workers:
        assert write_report(study.out, study.folder / "apart.html", workers).read_bytes() == again


def test_the_experiment_command_writes_a_report_unless_disabled(
    study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["batkube", "experiment", str(study.file()), "--out", str(study.out), "--jobs", "1"]
    for more, is_written in (["--no-report"], False), ([], True):
        monkeypatch.setattr("sys.argv", [*words, *more])
        with pytest.raises(SystemExit) as stop:
            main()

        assert stop.value.code == 0
        assert (study.out / "report.html").is_file() is is_written
    assert capsys.readouterr().out.endswith(f"report: {study.out / 'report.html'}\n")


def test_means_come_with_intervals_and_counts_and_the_best_is_marked(tmp_path: Path) -> None:
    runs = runs_of("a", [100, 101, 102]) + runs_of("b", [200, 201, 202]) + runs_of("c", [100, 103, 105])
    page = page_of(write_experiment(tmp_path, {"scheduler": ["a", "b", "c"]}, runs, figures=[]))

    rows = [row[:3] for row in page.tables[0][1:]]
    assert rows == [["a", "3", "101.0 ± 2.5★"], ["b", "3", "201.0 ± 2.5"], ["c", "3", "102.7 ± 6.3≈"]]


def test_rows_with_different_seeds_have_a_remark(tmp_path: Path) -> None:
    """Seeds may be excluded or not run yet, and a mean over the easy ones may look better."""
    seeds = "Not all rows of one workload have the same seeds"
    equal = page_of(
        write_experiment(tmp_path / "a", {"scheduler": ["a", "b"]}, runs_of("a", [1, 2]) + runs_of("b", [1, 2]))
    )
    unequal = page_of(
        write_experiment(tmp_path / "b", {"scheduler": ["a", "b"]}, runs_of("a", [1, 2]) + runs_of("b", [1]))
    )

    assert (seeds in equal.text, seeds in unequal.text) == (False, True)


def test_the_best_is_marked_among_runs_with_the_same_task(tmp_path: Path) -> None:
    axes = {"scheduler": ["a", "b"], "workload": ["small", "large"]}
    runs = [
        {"scheduler": scheduler, "workload": workload, "makespan": base * factor}
        for workload, factor in (("small", 1), ("large", 10))
        for scheduler, base in (("a", 100), ("b", 90))
    ]
    column = column_of("makespan")

    points = grid_points(read_findings(write_experiment(tmp_path, axes, runs)), [column])

    assert [(point.labels["scheduler"], point.labels["workload"]) for point in points] == [
        ("a", "small"),
        ("a", "large"),
        ("b", "small"),
        ("b", "large"),
    ]
    assert marks_of_best(points, column) == ["", "", "★", "★"]


def test_identical_repeats_are_remarked_on_and_count_once(tmp_path: Path) -> None:
    runs = [
        {"scheduler": name, "repeat": repeat, "digest": name, "makespan": span}
        for name, span in (("a", 5.0), ("b", 6.0))
        for repeat in (1, 2, 3)
    ]
    page = page_of(write_experiment(tmp_path, {"scheduler": ["a", "b"]}, runs, repeats=3))

    assert [row[1] for row in page.tables[0][1:]] == ["1 of 3", "1 of 3"]
    assert "Repeats are byte-identical: each of the 2 repeated points has one digest." in page.text
    assert "2 of 6 runs count" in page.text


def test_seeds_without_effect_are_not_counted_as_replicates_on_the_page(tmp_path: Path) -> None:
    runs = [
        {"scheduler": name, "seed": seed, "digest": name, "makespan": span, "real_s": 1.0 + seed / 10}
        for name, span in (("fcfs", 2_832_978.0), ("easy", 2_832_900.0))
        for seed in (0, 1)
    ]
    page = page_of(write_experiment(tmp_path, {"scheduler": ["fcfs", "easy"]}, runs, seeds=[0, 1]))

    rows = [row[:3] for row in page.tables[0][1:]]
    assert rows == [["fcfs", "1 of 2", "2,832,978.00"], ["easy", "1 of 2", "2,832,900.00★"]]
    assert "± 0 " not in page.text
    assert "Differences" not in page.text
    assert [path.name for path in write_paper_tables(tmp_path, tmp_path / "t")] == ["results.tex", "results.csv"]
    assert "the seed does not change anything in them" in page.text
    assert "2 of 4 runs count" in page.text
    assert "Every value is of one run, so there are no intervals." in page.text


def test_schedulers_are_compared_seed_by_seed_so_that_hard_workloads_cancel_out(tmp_path: Path) -> None:
    hard = [100.0, 500.0, 900.0, 1300.0]
    runs = runs_of("a", hard) + runs_of("b", [span + gain for span, gain in zip(hard, [9, 10, 11, 10], strict=True)])

    page = page_of(write_experiment(tmp_path, {"scheduler": ["a", "b"]}, runs))

    # The intervals of the means overlap by far; that of the pairs' differences is 10 ± 3.182 · 0.8165 / √4.
    assert page.tables[0][1:] == [["a", "4", "700 ± 822★"], ["b", "4", "710 ± 823"]]
    assert page.tables[1][1:] == [["b", "a", "4", "+10.0 ± 1.3"]]


def test_a_seed_is_a_pair_if_it_changes_either_run(tmp_path: Path) -> None:
    runs = runs_of("a", [100.0, 100.0, 100.0], digest="a") + runs_of("b", [101.0, 102.0, 103.0])
    runs += runs_of("c", [90.0, 90.0, 90.0], digest="c")

    page = page_of(write_experiment(tmp_path, {"scheduler": ["a", "b", "c"]}, runs))

    # t is 4.303 for one comparison, and 6.205 if both intervals have to hold at once.
    assert page.tables[1][1:] == [["b", "a", "3", "+2.0 ± 2.5"], ["c", "b", "3", "−12.0 ± 2.5*"]]


def test_failures_come_first_with_the_last_lines_of_the_scheduler(tmp_path: Path) -> None:
    runs = [
        {"scheduler": "a", "makespan": 5.0},
        {"scheduler": "b", "state": "failed", "failure": "the scheduler ended\n  with code 2", "makespan": ""},
    ]
    write_experiment(tmp_path, {"scheduler": ["a", "b"]}, runs)
    log = tmp_path / "runs" / "run-1" / "scheduler" / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"first line\n" + b"panic: <nil> \xff\n" * 30)

    page = page_of(tmp_path)

    assert page.tables[0][1][-1] == "the scheduler ended"
    assert "with code 2" in page.text
    assert "panic: <nil> \ufffd" in page.text
    assert "first line" not in page.text
    assert "1 of 2 runs failed" in page.text


def test_notes_of_all_runs_are_summed_and_violations_come_first(tmp_path: Path) -> None:
    write_experiment(tmp_path, {"scheduler": ["a"]}, runs_of("a", [1, 2]))
    warning = {"subject": "api", "severity": "warning", "message": "not modelled", "count": 2, "example": "x"}
    violation = {"subject": "node", "severity": "violation", "message": "without room", "count": 3, "example": "y"}
    for run, notes in (("run-0", [warning]), ("run-1", [warning, violation])):
        (tmp_path / "runs" / run).mkdir(parents=True)
        (tmp_path / "runs" / run / "fidelity.json").write_text(json.dumps(notes))

    (table,) = [table for table in page_of(tmp_path).tables if table[0][0] == "severity"]

    assert table[1:] == [
        ["violation", "node", "without room", "3", "1", "y"],
        ["warning", "api", "not modelled", "4", "2", "x"],
    ]


def test_texts_of_an_experiment_are_escaped_in_the_page(tmp_path: Path) -> None:
    def page_with(folder: Path, text: str) -> Page:
        runs = [
            {"scheduler": text, "machines": "4", "makespan": 1.0, "programs": [{"name": text, "sha256": text}]},
            {"scheduler": "b", "machines": "8", "state": "failed", "failure": text, "makespan": ""},
        ]
        entries = [{"x": "scheduler", "y": "makespan", "kind": "bar", "title": text, "baselines": {text: 3}}]
        axes = {"scheduler": [text, "b"], "machines": ["4", "8"]}
        words = {"title": text, "description": text, "command": [text], "inputs": {text: text}, "base": {text: text}}
        return page_of(write_experiment(folder, axes, runs, figures=entries, **words))

    nasty, plain = page_with(tmp_path / "nasty", NASTY), page_with(tmp_path / "plain", "plain")

    assert nasty.tags == plain.tags
    assert 'alert("1")' in nasty.text


def test_the_report_of_an_unfinished_experiment_counts_the_missing_runs(tmp_path: Path) -> None:
    page = page_of(write_experiment(tmp_path, {"scheduler": ["a"]}, runs_of("a", [1]), total=10))

    assert "9 of 10 runs are not finished yet." in page.text


def test_an_experiment_without_axes_or_finished_runs_has_a_report(tmp_path: Path) -> None:
    assert "all runs" in page_of(write_experiment(tmp_path / "a", {}, [{"makespan": 1.0}, {"makespan": 3.0}])).text
    assert "0 runs" in page_of(write_experiment(tmp_path / "b", {"scheduler": ["a"]}, [], total=4)).text


def test_gantt_charts_show_median_runs_of_different_points(tmp_path: Path) -> None:
    axes = {"scheduler": ["a", "b", "c"], "machines": ["4", "8", "16"]}
    runs = [
        {"scheduler": name, "machines": size, "seed": seed, "makespan": span, "nb_jobs": 1, "nb_jobs_finished": 1}
        for name in axes["scheduler"]
        for size in axes["machines"]
        for seed, span in enumerate((9.0, 1.0, 5.0))
    ]
    findings = read_findings(write_experiment(tmp_path, axes, runs))

    runs_and_labels = representative_runs(findings)

    assert len(runs_and_labels) == 6
    labels = [label for _, label in runs_and_labels]
    assert all(any(f"scheduler {name}," in label for label in labels) for name in axes["scheduler"])
    assert all(any(label.endswith(f"machines {size}") for label in labels) for size in axes["machines"])
    spans = findings.frame.set_index("run")["makespan"]
    assert {float(spans[run]) for run, _ in runs_and_labels} == {5.0}


def test_a_browser_shows_the_page_without_errors_and_sorts_its_tables(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("needs a browser: install chromium")
    write_experiment(tmp_path, {"scheduler": ["a", "b"]}, runs_of("a", [1, 2]) + runs_of("b", [3, 4]))
    page = write_report(tmp_path)

    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    result = subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert '<button type="button"><span>scheduler</span></button>' in result.stdout
    assert "Content Security Policy" not in result.stderr
    assert "CONSOLE" not in result.stderr


def test_differences_are_to_the_selected_baseline(tmp_path: Path) -> None:
    runs = [run for name in "abc" for run in runs_of(name, [100.0 + ord(name), 104.0 + ord(name)])]
    folder = write_experiment(tmp_path / "out", {"scheduler": ["a", "b", "c"]}, runs)

    command = ("report", "out", "--baseline", "scheduler=c", "--tables", "tables")
    assert run_in_process(tmp_path, *command).returncode == 0
    lines = (tmp_path / "tables" / "differences.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in lines] == [["scheduler", "less"], ["a", "c"], ["b", "c"]]
    with pytest.raises(InputError, match="is not a value of scheduler"):
        read_findings(folder, {"scheduler": "d"})
