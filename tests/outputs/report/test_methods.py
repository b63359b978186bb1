"""The methods paragraph has the facts of the manifests, and compiles with LaTeX."""

from __future__ import annotations

import hashlib
import html
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.commands import run_in_process

from batkube.outputs.report.citation import reference
from batkube.version import __version__

WORKLOAD = {
    "nb_res": 4,
    "jobs": [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(5)],
    "profiles": {"d": {"type": "delay", "delay": 5}},
}
GREEDY = """
from batkube.policies import Policy, Start

class Greedy(Policy):
    def decide(self, view):
        everywhere = view.free.fit(view.queue[0]) if view.queue else None
        for job in list(view.queue):
            yield Start(job, everywhere)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workload whose name has a special character of LaTeX."""
    (tmp_path / "my_jobs.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "latencies.yaml").write_text("start: 2\npull: lognormal:2.5,0.4\n")
    (tmp_path / "greedy.py").write_text(GREEDY)
    return tmp_path


def run(folder: Path, out: str, *options: str) -> None:
    command = ("run", "--workload", "my_jobs.json", "--platform", "2x4,8Gi", "--quiet", "--out", out, *options)
    result = run_in_process(folder, *command)
    assert result.returncode == 0, result.stderr


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def test_the_paragraph_has_versions_hashes_and_options(folder: Path) -> None:
    run(folder, "out", "--scheduler", "policy:easy", "--seed", "7", "--latencies", "latencies.yaml", "--warm-up", "10%")
    text = run_in_process(folder, "cite", "out").stdout
    digest = json.loads((folder / "out" / "manifest.json").read_bytes())["digest"]

    assert text.startswith(f"The run was simulated with Batkube {__version__} (Python ")
    assert "The scheduler was Batkube's policy easy." in text
    assert f"The workload was my_jobs.json (SHA-256 {hash_of(folder / 'my_jobs.json')}) with 5 jobs." in text
    assert "The cluster had 2 machines with 4 cores and 8 GiB." in text
    assert "Jobs were allocated whole machines." in text
    assert "The seed of all random streams was 7." in text
    assert "Pod latencies were pull lognormal:2.5,0.4 and start " in text
    assert f"(s) (SHA-256 {hash_of(folder / 'latencies.yaml')}); means exclude the first 10% of the jobs." in text
    assert f"A repetition gives byte-identical results (digest {digest})." in text
    assert text.endswith(f"\n\n{reference()}\n")


def test_several_runs_share_a_paragraph_that_names_violations(folder: Path) -> None:
    run(folder, "a", "--seed", "1", "--warm-up", "10%")
    run(folder, "b", "--seed", "2", "--scheduler", "policy:greedy.py:Greedy")
    text = run_in_process(folder, "cite", "a", "b").stdout

    assert "Both runs were simulated" in text
    options = "Runs differed in their options: means exclude the first 10% of the jobs (in 1 of 2 runs)."
    assert f"Pods started and ended without latency. {options}" in text
    greedy = f"the policy Greedy in greedy.py (SHA-256 {hash_of(folder / 'greedy.py')})"
    assert f"The schedulers were Batkube's policy fcfs and {greedy}." in text
    assert "The seeds of the random streams were 1 and 2." in text
    assert (
        "Schedulers violated rules of every cluster, so these numbers are of an impossible schedule: scheduler: "
        in text
    )


def test_runs_with_equal_results_for_several_seeds_are_one_observation(folder: Path) -> None:
    for seed in ("1", "2", "3"):
        run(folder, seed, "--seed", seed)
    text = run_in_process(folder, "cite", "1", "2", "3").stdout

    assert "All 3 runs were simulated" in text
    assert "2 of them are byte-identical to another run and count once." in text


def test_schedulers_with_equal_decisions_are_two_observations(folder: Path) -> None:
    """Jobs that never wait start at the same time under all schedulers, and each scheduler is an observation."""
    run(folder, "fcfs", "--scheduler", "policy:fcfs", "--platform", "64x4")
    run(folder, "sjf", "--scheduler", "policy:sjf", "--platform", "64x4")
    digests = {json.loads((folder / name / "manifest.json").read_bytes())["digest"] for name in ("fcfs", "sjf")}
    text = run_in_process(folder, "cite", "fcfs", "sjf").stdout

    assert len(digests) == 1
    assert "The schedulers were" in text
    assert "count once" not in text
    assert "counts once" not in text


def test_the_paragraph_of_an_experiment_counts_failed_runs(folder: Path) -> None:
    axes = {"scheduler": ["policy:fcfs", "policy:lazy.py:Lazy"]}
    workload = {"generate": "poisson", "jobs": 20, "interval": "10s", "size": "choice:1,2"}
    base = {"workload": workload, "platform": "4x1"}
    (folder / "e.yaml").write_text(yaml.safe_dump({"base": base, "axes": axes, "seeds": 3}))
    lazy = GREEDY.replace("Greedy", "Lazy").replace("list(view.queue)", "[]")
    (folder / "lazy.py").write_text(lazy)
    run_in_process(folder, "experiment", "e.yaml", "--out", "study", "--no-report", "--quiet", "--jobs", "1")
    text = run_in_process(folder, "cite", "study").stdout
    run_in_process(folder, "report", "study")

    assert text.splitlines()[0] in html.unescape((folder / "study" / "report.html").read_text())
    assert "All 3 runs were simulated" in text
    assert "count once" not in text  # each seed draws a workload of its own
    assert "3 more runs failed and have no results." in text
    recipe = "interval 10s; jobs 20; size choice:1,2"
    description = f"a synthetic workload of the model poisson ({recipe}), drawn with the run's seed"
    assert f"The workload was {description}." in text
    assert "The seeds of the random streams were 0 to 2." in text


@pytest.mark.parametrize(
    ("recipe", "description"),
    [
        ({"window": "20jobs"}, "a window of 20 jobs of trace.swf (SHA-256 {}), drawn with the run's seed."),
        (
            {"window": "10 jobs", "overlap": False, "rate": 2},
            "a window of 10 jobs of trace.swf (SHA-256 {}) (rate 2), "
            "drawn with the run's seed such that no two overlap.",
        ),
        (
            {"window": "30min"},
            "a window of 30min of trace.swf (SHA-256 {}), drawn with the run's seed. It had 30 jobs.",
        ),
        (
            {"blocks": "20min", "length": "1h", "seed": 4},
            "1h of trace.swf (SHA-256 {}) (seed 4) in blocks of 20min, drawn with replacement and with its own seed.",
        ),
    ],
)
def test_the_paragraph_describes_how_a_workload_was_drawn_from_a_trace(
    folder: Path, recipe: dict[str, object], description: str
) -> None:
    lines = [f"{n} {n * 60} 0 100 1 -1 -1 1 200 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 121)]
    (folder / "trace.swf").write_text("".join(lines))
    base = {"workload": {"resample": "trace.swf", **recipe}, "platform": "4x1", "cool-down": "5jobs"}
    (folder / "e.yaml").write_text(yaml.safe_dump({"base": base, "seeds": 2}))
    run_in_process(folder, "experiment", "e.yaml", "--out", "study", "--no-report", "--quiet", "--jobs", "1")
    text = run_in_process(folder, "cite", "study").stdout

    assert f"The workload was {description.format(hash_of(folder / 'trace.swf'))}" in text
    assert "Pods started and ended without latency; means exclude the last 5 jobs." in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX: install texlive-latex-recommended")
def test_latex_compiles_with_its_citation(folder: Path) -> None:
    run(folder, "out_1", "--latencies", "latencies.yaml")
    paragraph = run_in_process(folder, "cite", "out_1", "--latex").stdout
    (folder / "batkube.bib").write_text(run_in_process(folder, "cite", "--bibtex").stdout)
    (folder / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\begin{document}\n"
        + paragraph
        + "\\bibliographystyle{plain}\\bibliography{batkube}\n\\end{document}\n"
    )
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for command in (latex, ["bibtex", "paper"], latex, latex):
        result = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        assert result.returncode == 0, result.stdout[-2000:]

    assert r"my\_jobs.json" in paragraph
    assert r"\bibcite{batkube}" in (folder / "paper.aux").read_text()


def test_the_paragraph_and_the_report_have_the_history_of_a_converted_workload(folder: Path) -> None:
    convert = ("workload", "convert", "my_jobs.json", "-o", "made.swf", "--walltime-from-runtime", "2", "--first", "4")
    assert run_in_process(folder, *convert).returncode == 0
    run(folder, "out", "--workload", "made.swf")
    command = "batkube workload convert --first 4 --walltime-from-runtime 2"
    sentence = (
        f"made.swf was made from my_jobs.json (SHA-256 {hash_of(folder / 'my_jobs.json')}) by {command} "
        "(1 jobs left out; 4 walltimes added)."
    )
    text = run_in_process(folder, "cite", "out").stdout
    latex = run_in_process(folder, "cite", "out", "--latex").stdout
    run_in_process(folder, "report", "out")
    page = html.unescape((folder / "out" / "report.html").read_text())

    assert sentence in text
    assert r"\texttt{batkube workload convert" in latex
    assert sentence in page
    assert "How the workloads were made" in page
    assert f"1. {command} of my_jobs.json" in page
