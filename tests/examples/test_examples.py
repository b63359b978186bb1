"""Every example gives, byte for byte, the outputs kept in its folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from expected import EXAMPLES, EXPERIMENTS, FILES, SCENARIOS, without_run_names

import batkube
from batkube.scenarios.files import read_scenario_file
from batkube.scenarios.keys import make_scenario
from batkube.simulation.run import execute


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.parent.name)
def test_an_example_gives_its_expected_outputs(scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Fidelity notes name input files as the user gave them, so run in the folder that a user would be in.
    monkeypatch.chdir(EXAMPLES.parent)
    relative = scenario.relative_to(EXAMPLES.parent)

    execute(make_scenario(read_scenario_file(relative), relative), tmp_path / "out")

    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes() == (scenario.parent / "expected" / name).read_bytes(), name


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_example_experiment_gives_its_expected_table(experiment: Path, tmp_path: Path) -> None:
    batkube.experiment(experiment, tmp_path / "out", jobs=1)

    expected = experiment.parent / "expected" / f"{experiment.stem}.csv"
    assert without_run_names(tmp_path / "out" / "results.csv") == expected.read_text(encoding="utf-8")


def demo(folder: Path, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the demo in a folder."""
    path = path or f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", str(EXAMPLES / "demo" / "demo.sh")],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_runs_policies_and_the_real_kube_scheduler(tmp_path: Path) -> None:
    result = demo(tmp_path)

    assert result.returncode == 0, result.stderr
    runs = {path.parent.name for path in (tmp_path / "demo-out").glob("*/jobs.csv")}
    assert runs == {"fcfs", "easy", "conservative", "kube-scheduler"}
    for chart in ("easy.svg", "kube-scheduler.svg"):
        assert (tmp_path / "demo-out" / chart).stat().st_size > 10_000
    assert "mean wait" in result.stdout


def test_the_demo_skips_kube_scheduler_in_one_sentence_where_there_is_no_go(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "mkdir", "rm", "python", "batkube"):
        path = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert path is not None
        (programs / name).symlink_to(path)

    result = demo(tmp_path, path=str(programs), PIP_NO_INDEX="1")

    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "Skipped the real kube-scheduler: this machine has no Go, and PyPI" in result.stdout
    assert "The first build" not in result.stdout


def test_the_demo_skips_kube_scheduler_in_one_sentence_where_it_cannot_be_built(tmp_path: Path) -> None:
    result = demo(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"), GOMODCACHE=str(tmp_path / "modules"), GOPROXY="off")

    assert result.returncode == 0, result.stderr
    assert "The first build of kube-scheduler takes" in result.stdout
    assert "Skipped the real kube-scheduler: it could not be built" in result.stdout
    assert {path.parent.name for path in (tmp_path / "demo-out").glob("*/jobs.csv")} == {"fcfs", "easy", "conservative"}
