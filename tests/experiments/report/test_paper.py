"""Tables and figures of an experiment for a paper."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import batkube
from batkube.cli.app import build_app
from batkube.experiments.description.figures import read_figures
from batkube.experiments.figures.charts import chart_of
from batkube.experiments.figures.drawing import draw
from batkube.experiments.figures.gallery import charts_of, save_figures
from batkube.experiments.report.paper_tables import write_paper_tables
from batkube.experiments.results.findings import read_findings
from batkube.kernel.errors import InputError
from batkube.outputs.pages.latex import escape, math_number

#: Starts every job at once on the first machines, whether they are free or not.
_GREEDY = '''
from batkube.policies.interface import Policy, Start


class Greedy(Policy):
    """Allocates machines that are not free."""

    whole = None

    def decide(self, view):
        self.whole = self.whole or view.free
        for job in list(view.queue):
            yield Start(job, self.whole.fit(job))
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("paper")
    (place / "greedy.py").write_text(_GREEDY, encoding="utf-8")
    lublin = {"generate": "lublin", "jobs": 60, "machines": 16}
    poisson = {
        "generate": "poisson",
        "jobs": 60,
        "interval": "100s",
        "run-time": "exponential:300",
        "size": "choice:1,4",
    }
    experiment = batkube.experiment(
        {
            "title": "Two policies & one that over-allocates",
            "base": {"platform": "16x1"},
            "axes": {
                "scheduler": {
                    "fcfs": "policy:fcfs",
                    "sjf": "policy:sjf",
                    "greedy": f"policy:{place / 'greedy.py'}:Greedy",
                },
                "trace": {"lublin_16": {"workload": lublin}, "poisson": {"workload": poisson}},
            },
            "seeds": 4,
        },
        place / "out",
        jobs=2,
    )
    assert not experiment.failures
    return place / "out"


def test_the_tables_equal_the_numbers_of_the_runs_and_scipys_statistics(folder: Path, tmp_path: Path) -> None:
    write_paper_tables(folder, tmp_path)

    runs = read_findings(folder).frame
    waits = {
        key: rows.sort_values("seed")["mean_waiting_time"].to_numpy()
        for key, rows in runs.groupby(["scheduler", "trace"])
    }
    with (tmp_path / "results.csv").open(encoding="utf-8") as file:
        means = [row for row in csv.DictReader(file) if row["column"] == "mean_waiting_time"]
    for row in means:
        values = waits[row["scheduler"], row["trace"]]
        assert float(row["mean"]) == pytest.approx(values.mean())
        if row["scheduler"] == "greedy":
            continue  # no job ever waits
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        assert (float(row["low"]), float(row["high"])) == pytest.approx((low, high))
    with (tmp_path / "differences.csv").open(encoding="utf-8") as file:
        differences = [row for row in csv.DictReader(file) if row["column"] == "mean_waiting_time"]
    assert [(row["scheduler"], row["less"], row["pairs"]) for row in differences] == [("sjf", "fcfs", "4")] * 2
    for row in differences:
        interval = stats.ttest_rel(waits["sjf", row["trace"]], waits["fcfs", row["trace"]]).confidence_interval(0.95)
        assert (float(row["low"]), float(row["high"])) == pytest.approx((interval.low, interval.high))


def test_an_overallocating_policy_is_never_marked_as_best(folder: Path, tmp_path: Path) -> None:
    runs = read_findings(folder).frame
    assert (runs[runs["scheduler"] == "greedy"]["nb_violations"] > 0).all()

    write_paper_tables(folder, tmp_path)
    charts, _ = charts_of(read_findings(folder))

    latex = (tmp_path / "results.tex").read_text(encoding="utf-8")
    lines = [line for line in latex.splitlines() if line.startswith("greedy")]
    assert len(lines) == 2
    assert all(r"\dagger" in line and r"\star" not in line and r"\approx" not in line for line in lines)
    assert "jobs failed" in latex
    assert "greedy" not in (tmp_path / "differences.tex").read_text(encoding="utf-8")
    assert {chart.kind for chart in charts} == {"bar", "cdf"}
    for chart in charts:
        names = {*chart.x.categories, *chart.labels}
        assert "greedy ✗" in names
        assert "greedy" not in names
        assert any("rules of every cluster" in remark for remark in chart.remarks)
    page = tmp_path / "r.html"
    CliRunner().invoke(build_app(), ["report", str(folder), "-o", str(page)])
    assert "violated rules of every cluster, so its means are not compared" in page.read_text(encoding="utf-8")


def test_curves_are_the_mean_over_runs_of_the_share_of_jobs(folder: Path) -> None:
    findings = read_findings(folder)
    (spec,) = read_figures(
        [{"kind": "cdf", "y": "waiting_time", "by": "scheduler", "facet": "trace"}], folder, findings.axes
    )

    chart = chart_of(spec, findings)

    assert chart is not None
    panel = chart.panels[1]
    assert panel.facet == "poisson"
    curve = panel.series[0]
    runs = findings.frame
    names = runs[(runs["scheduler"] == "fcfs") & (runs["trace"] == "poisson")]["run"]
    waits = [findings.results(run).jobs["waiting_time"].to_numpy() for run in names]
    for point in (curve.points[0], curve.points[80], curve.points[-1]):
        shares = [float(np.mean(values <= point.x)) * 100 for values in waits]
        assert point.sample.mean == pytest.approx(np.mean(shares), abs=1e-9)
        assert point.sample.n == 4
    assert curve.points[-1].sample.mean == 100
    assert draw(chart, width_in=3.5).get_size_inches()[0] == 3.5


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"kind": "cdf", "y": "makespan"}, "is not a number that each job has"),
        ({"kind": "cdf", "y": ["waiting_time", "turnaround_time"]}, "a cdf shows one number"),
        ({"kind": "cdf", "x": "scheduler"}, "does not apply to a cdf"),
        ({"kind": "cdf", "by": "shape"}, "is not an axis of this experiment"),
    ],
)
def test_an_invalid_distribution_is_rejected_with_its_place(entry: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_figures([entry], Path("e.yaml"), {"scheduler": ["a", "b"]})

    assert problem in str(error.value)
    assert "figures[1]" in str(error.value)


def test_a_report_is_only_written_as_html(folder: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(build_app(), ["report", str(folder), "-o", str(tmp_path / "rep.pdf")])

    assert isinstance(result.exception, InputError)
    assert "HTML page" in str(result.exception)
    assert not (tmp_path / "rep.pdf").exists()


def test_figures_for_print_are_the_same_bytes_each_time(folder: Path, tmp_path: Path) -> None:
    first = save_figures(folder, tmp_path / "a", "pdf", 3.5)
    again = save_figures(folder, tmp_path / "b", "pdf", 3.5)

    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert all(path.read_bytes().startswith(b"%PDF") for path in first)


def test_texts_of_users_are_escaped_in_latex() -> None:
    assert escape(r"50 % & \input{x}_$1^2 ∆") == (r"50 \% \& \textbackslash{}input\{x\}\_\$1\textasciicircum{}2 ?")
    assert math_number("-1,234.5") == r"$-1\,234.5$"
    assert math_number("none_") == r"none\_"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX: install texlive-latex-recommended")
def test_latex_compiles_the_tables_and_figures(folder: Path, tmp_path: Path) -> None:
    write_paper_tables(folder, tmp_path, ["makespan", "mean_bounded_slowdown"])
    figures = save_figures(folder, tmp_path / "figures", "pgf", 3.5)
    runs = [run["run"] for run in read_findings(folder).runs[:2]]
    folders = [str(folder / "runs" / run) for run in runs]
    words = ["compare", *folders, "--latex", str(tmp_path / "compare.tex")]
    CliRunner().invoke(build_app(), words, catch_exceptions=False)
    inputs = "\n\n".join(
        rf"\input{{{name}}}"
        for name in ("results.tex", "differences.tex", "compare.tex", *(f"figures/{path.name}" for path in figures))
    )
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\usepackage{pgf}\\begin{document}"
        f"\\footnotesize\n{inputs}\n\\end{{document}}",
        encoding="utf-8",
    )

    result = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert result.returncode == 0, result.stdout[-3000:]
    assert (tmp_path / "paper.pdf").is_file()
