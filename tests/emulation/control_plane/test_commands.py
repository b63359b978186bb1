"""How the programs of a real control plane are started."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from batkube.emulation.control_plane.commands import NO_LIMITS, PlaneCommands, RateLimits

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


def commands(folder: Path, limits: RateLimits | None = None) -> PlaneCommands:
    return PlaneCommands(folder, {name: folder / "bin" / name for name in PROGRAMS}, limits or RateLimits())


def test_secrets_are_readable_for_their_owner_alone(tmp_path: Path) -> None:
    commands(tmp_path)

    files = list(tmp_path.iterdir())
    assert len(files) == 6
    assert [path.name for path in files if stat.S_IMODE(path.stat().st_mode) != 0o600] == []


def test_every_program_has_a_user_of_its_own(tmp_path: Path) -> None:
    commands(tmp_path)

    tokens = [line.split(",") for line in (tmp_path / "tokens.csv").read_text().splitlines()]
    users = {token: user for token, user, *_ in tokens}
    for file in tmp_path.glob("*kubeconfig"):
        (entry,) = yaml.safe_load(file.read_text())["users"]
        assert users.pop(entry["user"]["token"]) == entry["name"]
    assert users == {}


def test_the_scheduler_gets_the_users_configuration_and_our_kubeconfig(tmp_path: Path) -> None:
    given = {"podMaxBackoffSeconds": 4, "clientConnection": {"qps": 7}, "leaderElection": {"leaderElect": True}}

    command = commands(tmp_path, NO_LIMITS).scheduler(given, ["--v=4"])

    assert command[-1] == "--v=4"
    content = yaml.safe_load((tmp_path / "scheduler.yaml").read_text())
    assert content["podMaxBackoffSeconds"] == 4
    assert content["leaderElection"] == {"leaderElect": True}
    assert content["clientConnection"] == {
        "qps": 7,
        "burst": NO_LIMITS.client_burst,
        "kubeconfig": str(tmp_path / "scheduler.kubeconfig"),
    }


@pytest.mark.parametrize(("limits", "has"), [(RateLimits(), False), (NO_LIMITS, True)])
def test_limits_are_the_programs_own_unless_they_are_taken_away(tmp_path: Path, limits: RateLimits, has: bool) -> None:
    made = commands(tmp_path, limits)

    assert ("--enable-priority-and-fairness=false" in made.apiserver()) is has
    assert ("--kube-api-qps=5000" in made.controller_manager()) is has
    made.scheduler({}, [])
    assert ("qps" in yaml.safe_load((tmp_path / "scheduler.yaml").read_text())["clientConnection"]) is has
