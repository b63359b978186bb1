"""The command lines and files of a real control plane."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from batkube.emulation.control_plane.commands import NO_LIMITS, PlaneCommands, RateLimits

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


def commands(folder: Path, limits: RateLimits | None = None) -> PlaneCommands:
    return PlaneCommands(folder, {name: folder / "bin" / name for name in PROGRAMS}, limits or RateLimits())


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    commands(tmp_path)

    files = list(tmp_path.iterdir())
    assert len(files) == 6
    assert [path.name for path in files if stat.S_IMODE(path.stat().st_mode) != 0o600] == []


def test_every_program_has_its_own_user(tmp_path: Path) -> None:
    commands(tmp_path)

    tokens = [line.split(",") for line in (tmp_path / "tokens.csv").read_text().splitlines()]
    users = {token: user for token, user, *_ in tokens}
    for file in tmp_path.glob("*kubeconfig"):
        (entry,) = yaml.safe_load(file.read_text())["users"]
        assert users.pop(entry["user"]["token"]) == entry["name"]
    assert users == {}


def test_the_schedulers_configuration_is_extended_by_kubeconfig_and_limits(tmp_path: Path) -> None:
    configuration = {"podMaxBackoffSeconds": 4, "clientConnection": {"qps": 7}, "leaderElection": {"leaderElect": True}}

    command = commands(tmp_path, NO_LIMITS).scheduler(configuration, ["--v=4"])

    assert command[-1] == "--v=4"
    content = yaml.safe_load((tmp_path / "scheduler.yaml").read_text())
    assert content["podMaxBackoffSeconds"] == 4
    assert content["leaderElection"] == {"leaderElect": True}
    assert content["clientConnection"] == {
        "qps": 7,
        "burst": NO_LIMITS.client_burst,
        "kubeconfig": str(tmp_path / "scheduler.kubeconfig"),
    }


@pytest.mark.parametrize(("limits", "are_removed"), [(RateLimits(), False), (NO_LIMITS, True)])
def test_the_rate_limits_of_the_programs_can_be_removed(tmp_path: Path, limits: RateLimits, are_removed: bool) -> None:
    plane_commands = commands(tmp_path, limits)

    assert ("--enable-priority-and-fairness=false" in plane_commands.apiserver()) is are_removed
    assert ("--kube-api-qps=5000" in plane_commands.controller_manager()) is are_removed
    plane_commands.scheduler({}, [])
    assert ("qps" in yaml.safe_load((tmp_path / "scheduler.yaml").read_text())["clientConnection"]) is are_removed
