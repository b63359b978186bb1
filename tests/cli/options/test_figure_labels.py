"""The option `--labels`: texts for names that figures would otherwise cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import run_in_process
from tests.run_folders import MakeRun, make_run

from report_pages import write_experiment

__all__ = ["make_run"]

NODE, USER = "gpu-machine-of-the-third-rack", "a user with a very long name, of the department"
MACHINE_AND_USER = f"{NODE}: gpu\n{USER}: Ada\n"
LABELS = {"gantt": MACHINE_AND_USER, "chart": f"user {USER}: Ada\n", "report": MACHINE_AND_USER}
COMMANDS = {
    "gantt": ["gantt", "run", "-o", "x.svg", "--by", "user", "--width", "column"],
    "chart": ["chart", "users", "run", "-o", "x.svg", "--width", "column"],
    "report": ["report", "run", "-o", "x.html"],
}


@pytest.fixture
def folder(make_run: MakeRun, tmp_path: Path) -> Path:
    rows = [("1", 0, 0, 100, "0", {"user": USER}), ("2", 0, 0, 50, "1", {"user": "bob"})]
    machines = [{"name": NODE, "cpu_milli": 1000}, {"name": "node-1", "cpu_milli": 1000}]
    make_run(rows, manifest={"platform": {"machines": machines}, "resources": "machines"}).path.rename(tmp_path / "run")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reports_names_that_it_cuts_and_shows_the_texts_of_a_file_instead(command: str, folder: Path) -> None:
    cut = run_in_process(folder, *COMMANDS[command])
    (folder / "labels.yaml").write_text(LABELS[command])
    labelled = run_in_process(folder, *COMMANDS[command], "--labels", "labels.yaml")

    assert (cut.returncode, labelled.returncode) == (0, 0)
    assert cut.stderr.startswith("cut in figures: ")
    assert cut.stderr.endswith("; set their texts with --labels FILE\n")
    assert labelled.stderr == ""


def test_names_in_no_figure_are_reported(folder: Path) -> None:
    (folder / "labels.yaml").write_text(f"{MACHINE_AND_USER}node-2: x\n")

    result = run_in_process(folder, *COMMANDS["report"], "--labels", "labels.yaml")

    assert result.stderr == "labels.yaml: in no figure: 'node-2'\n"


def test_figures_of_an_experiment_show_the_texts(tmp_path: Path) -> None:
    long = "kube-scheduler@1.34.4 with the configuration of the department of physics"
    axes = {"scheduler": ["fcfs", long]}
    runs = [
        {"scheduler": name, "makespan": 100 + number, "mean_waiting_time": 1}
        for number, name in enumerate(axes["scheduler"])
    ]
    write_experiment(tmp_path / "study", axes, runs, figures=[{"x": "scheduler", "y": "makespan", "kind": "bar"}])
    (tmp_path / "labels.yaml").write_text(f"'{long}': Kubernetes, physics\n")

    command = ["report", "study", "--figures", "figures", "--width", "column"]
    cut = run_in_process(tmp_path, *command)
    labelled = run_in_process(tmp_path, *command, "--labels", "labels.yaml")

    assert f"cut in figures: {long!r};" in cut.stderr
    assert (labelled.returncode, labelled.stderr) == (0, "")
    (figure,) = (tmp_path / "figures").iterdir()
    assert "Kubernetes, physics" in figure.read_text()
    assert "Kubernetes, physics" in (tmp_path / "study" / "report.html").read_text()
