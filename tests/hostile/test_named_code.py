"""Code named in files from elsewhere is listed, and executed only with --trust or after a confirmation."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from tests.commands import RUN, command, run_batkube, run_in_process, write_study

import batkube
from batkube.kernel.errors import InputError
from batkube.scenarios.keys import make_scenario
from batkube.simulation.preparation.named_code import code_of_scenario, is_own

POLICY = """
from pathlib import Path
from batkube.policies.fcfs import Fcfs
Path("was-here").touch()
class Mine(Fcfs):
    pass
"""
ENTRY = {"about": "x", "clock": "preload", "scheduler-name": "default-scheduler"}
CATALOGUE = {
    "kube-scheduler": {**ENTRY, "command": ["/bin/sh", "-c", "echo evil"]},
    "with-companion": {**ENTRY, "command": ["./mine"], "companions": ["kube-scheduler"]},
    "unused": {**ENTRY, "command": ["/bin/true"]},
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The current folder; the folder `elsewhere` next to it has a study by somebody else."""
    (tmp_path / "elsewhere").mkdir()
    write_study(tmp_path / "elsewhere", "policy:./mine.py:Mine", policy_file=POLICY)
    scenario = {"workload": "w.json", "platform": "2x1", "scheduler": "policy:./mine.py:Mine"}
    (tmp_path / "elsewhere" / "s.yaml").write_text(yaml.safe_dump(scenario))
    (tmp_path / "here").mkdir()
    write_study(tmp_path / "here", policy_file=POLICY)
    return tmp_path / "here"


def code_of(keys: Mapping[str, object]) -> list[str]:
    scenario = make_scenario({"workload": "w.json", "platform": "2x1", **keys}, "test")
    return [one.text for one in code_of_scenario(scenario, Path("s.yaml"))]


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "../elsewhere/s.yaml", "--out", "out"),
        ("experiment", "../elsewhere/e.yaml", "--out", "out", "--no-report"),
    ],
)
def test_code_of_a_file_from_elsewhere_needs_trust(here: Path, arguments: tuple[str, ...]) -> None:
    refused = run_in_process(here, *arguments)

    assert (refused.returncode, (here / "was-here").exists()) == (2, False)
    assert f"{arguments[1]} names policy:../elsewhere/mine.py:Mine" in refused.stderr
    assert "add --trust" in refused.stderr

    trusted = run_in_process(here, *arguments, "--trust")

    assert (trusted.returncode, (here / "was-here").exists()) == (0, True), trusted.stderr
    assert f"executes code: {arguments[1]} names policy:" in trusted.stderr


def test_own_files_in_the_current_folder_need_no_confirmation(here: Path) -> None:
    elsewhere = here.parent / "elsewhere"

    assert run_in_process(elsewhere, "run", "s.yaml", "--out", "out").returncode == 0
    assert run_in_process(elsewhere, "experiment", "e.yaml", "--out", "all", "--no-report").returncode == 0


def test_code_on_the_command_line_needs_no_confirmation(here: Path) -> None:
    typed = ("run", "../elsewhere/s.yaml", "--scheduler", "policy:../elsewhere/mine.py:Mine", "--out", "out")

    assert run_in_process(here, *typed).returncode == 0


def test_a_packed_policy_needs_trust_even_in_the_current_folder(here: Path) -> None:
    assert run_in_process(here, *RUN, "--scheduler", "policy:./mine.py:Mine", "--pack").returncode == 0
    (here / "was-here").unlink()
    (here / "mine.py").unlink()

    refused = run_in_process(here, "rerun", "out")

    assert (refused.returncode, (here / "was-here").exists()) == (2, False)
    assert "out/manifest.json names policy:" in refused.stderr
    assert run_in_process(here, "rerun", "out", "--trust").returncode == 0


def test_a_rerun_lists_an_own_policy_and_needs_no_confirmation(here: Path) -> None:
    assert run_in_process(here, *RUN, "--scheduler", "policy:./mine.py:Mine").returncode == 0

    again = run_in_process(here, "rerun", "out")

    assert (again.returncode, "executes code: out/manifest.json names policy:" in again.stderr) == (0, True)


@pytest.mark.parametrize(("reply", "executes"), [(b"y\n", True), (b"n\n", False)])
def test_on_a_terminal_the_user_is_asked_for_confirmation(here: Path, reply: bytes, executes: bool) -> None:
    ours, theirs = pty.openpty()
    words = command("run", "../elsewhere/s.yaml", "--out", "out")
    with subprocess.Popen(words, cwd=here, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, reply)
        process.wait(60)
        printed = os.read(ours, 10_000)
    os.close(ours)

    assert b"execute it? [y/N]" in printed
    assert (process.returncode == 0, (here / "was-here").exists()) == (executes, executes)


def test_a_catalogue_from_elsewhere_needs_trust_and_names_what_the_run_uses(here: Path) -> None:
    """It may redefine kube-scheduler."""
    catalogue = here.parent / "elsewhere" / "c.yaml"
    catalogue.write_text(yaml.safe_dump(CATALOGUE))
    typed = [*RUN, "--catalogue", str(catalogue), "--scheduler"]

    refused = run_batkube(here, *typed, "with-companion")

    assert refused.returncode == 2
    assert f"{catalogue} names with-companion: {catalogue.parent}/mine" in refused.stderr
    assert f"{catalogue} names kube-scheduler: /bin/sh -c 'echo evil'" in refused.stderr
    assert "unused" not in refused.stderr
    assert run_in_process(here, *typed, "policy:fcfs").returncode == 0


def test_a_catalogue_from_elsewhere_starts_no_program_given_by_its_path_without_trust(here: Path) -> None:
    """The entry kube-scheduler of the catalogue starts such a scheduler, and may replace its command."""
    catalogue = here.parent / "elsewhere" / "c.yaml"
    catalogue.write_text(yaml.safe_dump(CATALOGUE))
    (here / "mine").write_text("#!/bin/sh\n")
    (here / "mine").chmod(0o755)

    for scheduler in ("./mine", "./mine --verbose", "second=./mine"):
        refused = run_batkube(here, *RUN, "--catalogue", str(catalogue), "--scheduler", scheduler)

        assert refused.returncode == 2
        assert f"{catalogue} names kube-scheduler: /bin/sh -c 'echo evil'" in refused.stderr


@pytest.mark.parametrize("companion", ["kube-scheduler\t--x", "'kube'-scheduler@1.34.4 --x"])
def test_companions_are_listed_however_they_are_written(here: Path, companion: str) -> None:
    catalogue = here.parent / "elsewhere" / "c.yaml"
    entries = {**CATALOGUE, "with-companion": {**ENTRY, "command": ["./mine"], "companions": [companion]}}
    catalogue.write_text(yaml.safe_dump(entries))

    listed = code_of({"scheduler": "with-companion", "catalogue": str(catalogue)})

    assert "kube-scheduler: /bin/sh -c 'echo evil'" in listed


def test_a_manifest_behind_a_link_needs_trust(here: Path) -> None:
    """A link in a run folder to a manifest beside it once counted as a file of one's own."""
    assert run_in_process(here, *RUN, "--scheduler", "policy:./mine.py:Mine", "--pack").returncode == 0
    for name in ("was-here", "mine.py"):
        (here / name).unlink()
    (here / "out" / "manifest.json").rename(here / "m.json")
    (here / "out" / "manifest.json").symlink_to("../m.json")

    refused = run_in_process(here, "rerun", "out")

    assert (refused.returncode, (here / "was-here").exists()) == (2, False)
    assert "out/manifest.json names policy:" in refused.stderr


def test_the_python_interface_asks_for_no_confirmation(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    with pytest.raises(InputError, match=r"e\.yaml names policy:"):
        batkube.experiment("../elsewhere/e.yaml", "out")

    assert not (here / "was-here").exists()
    assert not batkube.experiment("../elsewhere/e.yaml", "out", trust=True).failures


@pytest.mark.parametrize(
    "keys",
    [
        {"scheduler": "policy:./mine.py:Mine"},
        {"scheduler": "policy:mine.py"},
        {"scheduler": "preload:/bin/sh -c x"},
        {"scheduler": "python:mine.py"},
        {"scheduler": "real:/bin/sh -c x", "time": "paced"},
        {"scheduler": "./mine"},
        {"scheduler": "kube-scheduler --kubeconfig=evil"},
        {"scheduler": "kube-scheduler\t--kubeconfig=evil"},
        {"scheduler": "kube-scheduler", "scheduler-args": {"kubeconfig": "evil"}},
        {"scheduler": ["kube-scheduler", "second=./mine"]},
        {"scheduler": "kube-scheduler", "attach": ["./mine --now"]},
        {"scheduler": "kube-scheduler", "attach": ["descheduler --kubeconfig=evil"]},
        {"scheduler": "kube-scheduler@0.0.0-20261119000000-abcdef123456"},
        {"scheduler": "kube-scheduler", "attach": ["descheduler@0.36.1-0.20261119000000-abcdef123456"]},
        {"scheduler": "kube-scheduler", "controllers": "kube-controller-manager --kubeconfig=evil"},
        {"scheduler": "batsim:./mine"},
        {"scheduler": "batsim:evil"},
    ],
)
def test_every_key_that_can_execute_a_program_is_listed(keys: dict[str, object]) -> None:
    assert len(code_of(keys)) == 1


@pytest.mark.parametrize(
    "keys",
    [
        {"scheduler": "policy:easy", "scheduler-args": {"x": "1"}},
        {"scheduler": "batsim:tcp://127.0.0.1:28000"},
        {"scheduler": ["kube-scheduler@1.34.4", "second=kube-scheduler"], "attach": ["descheduler"]},
        {"scheduler": "kube-scheduler@v1.35.0-rc.1", "attach": ["kueue@0.10.0"]},
        {"scheduler": "kube-scheduler", "controllers": "kube-controller-manager@1.34.4"},
    ],
)
def test_batkubes_own_programs_are_not_listed(keys: dict[str, object]) -> None:
    assert code_of(keys) == []


def test_a_file_of_another_user_or_in_a_run_folder_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path)
    assert run_in_process(tmp_path, *RUN, "--pack").returncode == 0
    (tmp_path / "link.json").symlink_to("/etc/hostname")
    monkeypatch.chdir(tmp_path)
    places = {name: is_own(Path(name)) for name in ("w.json", "out/inputs/0/w.json", "link.json", "missing")}
    assert places == {"w.json": True, "out/inputs/0/w.json": False, "link.json": False, "missing": False}

    if os.geteuid() == 0:
        os.chown("w.json", 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert not is_own(Path("w.json"))
