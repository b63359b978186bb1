"""`batkube schedulers` as its users see it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from batkube.cli.main import main


class Answer:
    """What a command printed."""

    def __init__(self, printed: tuple[str, str]) -> None:
        self.stdout, self.stderr = printed


Shell = Callable[..., Answer]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Calls `batkube schedulers`, with folders of its own for cache and configuration."""
    if shutil.which("go") is None:
        pytest.skip("needs a Go toolchain")
    # Go keeps its own cache below XDG_CACHE_HOME as well, unless it is told.
    build_cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("GOCACHE", build_cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def call(*arguments: str, code: int = 0) -> Answer:
        monkeypatch.setattr(sys, "argv", ["batkube", "schedulers", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        answer = Answer(capfd.readouterr())
        assert (stop.value.code or 0) == code, answer.stderr
        return answer

    return call


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.com/mine\n\ngo 1.24\n")
    (folder / "main.go").write_text('package main\n\nfunc main() { println("mine") }\n')
    return folder


def test_the_list_shows_ours_and_the_users(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "batkube"
    folder.mkdir(parents=True)
    (folder / "schedulers.yaml").write_text("mine: {about: packs, module: example.com/mine, default: 0.1.0}\n")

    lines = shell("list").stdout.splitlines()

    assert [line.split()[0] for line in lines[::2]] == ["kube-scheduler", "kube-controller-manager", "mine"]


def test_a_folder_is_built_and_its_path_is_all_that_goes_to_standard_output(shell: Shell, module: Path) -> None:
    missing = shell("path", "--module", str(module), code=2)
    built = shell("build", "--module", str(module))
    found = shell("path", "--module", str(module))

    assert "has not been built" in missing.stderr
    assert built.stdout == found.stdout
    assert "built module" in built.stderr
    done = subprocess.run([built.stdout.strip()], capture_output=True, text=True, check=True)
    assert done.stderr == "mine\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["build"], "needs either the name of a program or --module"),
        (["build", "etcd", "--module", "."], "needs either the name of a program or --module"),
        (["build", "slurm"], "there is no such program"),
        (["build", "--module", "/nowhere"], "is not a folder with a go.mod"),
        (["build", "kube-scheduler", "--go-version", "1.2"], "is no version of Go"),
        (["list", "--catalogue", "/nowhere.yaml"], "cannot be read"),
    ],
)
def test_bad_usage_is_one_message_with_a_remedy(shell: Shell, arguments: list[str], problem: str) -> None:
    said = shell(*arguments, code=2).stderr

    assert problem in said
    assert "remedy: " in said
    assert "Traceback" not in said
