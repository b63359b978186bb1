"""The files of the 2020 study: they plan what the study's README says, of data that is where it says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from batkube.experiments.description import read_experiment
from batkube.experiments.plan import make_plan
from batkube.timing.paced_text import TimeMode
from conftest import REPOSITORY

STUDY = REPOSITORY / "examples" / "study-2020"
FILES = sorted(STUDY.glob("*.yaml"))
#: Names and runs of the README's table.
TOLD = dict(re.findall(r"^\| `([a-z-]+\.yaml)` \|.*\| (\d+) \| \d+ h \|$", (STUDY / "README.md").read_text(), re.M))


@pytest.fixture
def study(tmp_path: Path, shared_data: Path) -> Path:
    """A copy of the study's folder with its data in place."""
    folder = tmp_path / "study"
    shutil.copytree(STUDY, folder, ignore=shutil.ignore_patterns("data", "out"))
    (folder / "data").symlink_to(shared_data / "batkube")
    return folder


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_file_plans_as_many_runs_as_the_readme_says_paced_and_exact(file: Path, study: Path) -> None:
    plan = make_plan(read_experiment(study / file.name), lambda name: Path(__file__))

    assert len(plan.runs) == int(TOLD[file.name])
    assert {run.scenario.time.mode for run in plan.runs} == {TimeMode.PACED, TimeMode.EXACT}


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_all_published_data_is_found(file: Path, study: Path) -> None:
    named = list(_published(yaml.safe_load(file.read_text())))

    assert named
    for pattern in named:
        assert list(study.glob(pattern)), pattern


def _published(content: object) -> Iterator[str]:
    """Yield the paths of data of others, wherever they are named."""
    if isinstance(content, dict):
        yield from (content[key] for key in ("file", "jobs") if key in content)
        for value in content.values():
            yield from _published(value)
    elif isinstance(content, list):
        for value in content:
            yield from _published(value)
