"""Versions of libraries: those that users may have, and those of CI and developers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib

from tests.conftest import REPOSITORY

LOCKED = [line for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~ ]", requirement)[0].lower().replace("_", "-")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def requirements() -> dict[str, str]:
    """Return the requirements in pyproject.toml, by name."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return {
        name_of(requirement): requirement
        for requirement in [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    }


def test_the_lock_file_has_versions_and_no_urls() -> None:
    assert [line for line in LOCKED if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.+]+", line)] == []


def test_every_requirement_is_locked_at_a_sufficient_version() -> None:
    locked = {name_of(line): line.partition("==")[2] for line in LOCKED}

    assert set(requirements()) <= set(locked)
    for name, requirement in requirements().items():
        if bound := re.search(r">=([\d.]+)", requirement):
            assert numbers(locked[name]) >= numbers(bound[1]), requirement


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

    assert [requirement for requirement in project["dependencies"] if ">=" not in requirement] == []


def test_time_zones_do_not_depend_on_the_system() -> None:
    program = "from batkube.cluster.cron.time_zones import zone_of; print(zone_of('Europe/Paris'))"
    environment = {**os.environ, "PYTHONTZPATH": ""}

    assert subprocess.check_output([sys.executable, "-c", program], env=environment, text=True) == "Europe/Paris\n"
