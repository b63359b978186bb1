"""The versions of libraries: what users may have, and what CI and developers do have."""

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
    """Return what pyproject.toml asks for, by name."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return {name_of(one): one for one in [*project["dependencies"], *(one for extra in extras for one in extra)]}


def test_the_lock_names_versions_and_nowhere_to_get_them() -> None:
    assert [line for line in LOCKED if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.+]+", line)] == []


def test_everything_that_is_required_is_locked_at_a_version_that_will_do() -> None:
    locked = {name_of(line): line.partition("==")[2] for line in LOCKED}

    assert set(requirements()) <= set(locked)
    for name, requirement in requirements().items():
        if bound := re.search(r">=([\d.]+)", requirement):
            assert numbers(locked[name]) >= numbers(bound[1]), requirement


def test_everything_that_users_need_has_a_lower_bound() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

    assert [one for one in project["dependencies"] if ">=" not in one] == []


def test_time_zones_are_known_where_the_system_has_none() -> None:
    program = "from batkube.cluster.cron.time_zones import zone_of; print(zone_of('Europe/Paris'))"
    bare = {**os.environ, "PYTHONTZPATH": ""}

    assert subprocess.check_output([sys.executable, "-c", program], env=bare, text=True) == "Europe/Paris\n"
