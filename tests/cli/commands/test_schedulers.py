"""The command `batkube schedulers`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from batkube.cli.main import main
from batkube.schedulers.build.records import lock_of
from batkube.schedulers.build.toolchains import Toolchain, file_lock, select_toolchain
from batkube.schedulers.overlay_edits import EDITS
from schedulers.conftest import real_go


class Output:
    """The output of a command."""

    def __init__(self, texts: tuple[str, str]) -> None:
        self.stdout, self.stderr = texts


Shell = Callable[..., Output]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Runs `batkube schedulers` with its own cache and configuration folders."""
    if real_go() is None:
        pytest.skip("needs a Go toolchain")
    # Go's own cache is below XDG_CACHE_HOME too, unless set otherwise.
    build_cache = subprocess.run(
        [str(real_go()), "env", "GOCACHE"], capture_output=True, text=True, check=True
    ).stdout.strip()
    monkeypatch.setenv("GOCACHE", build_cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def call(*arguments: str, code: int = 0) -> Output:
        monkeypatch.setattr(sys, "argv", ["batkube", "schedulers", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        output = Output(capfd.readouterr())
        assert (stop.value.code or 0) == code, output.stderr
        return output

    return call


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.com/mine\n\ngo 1.24\n")
    (folder / "main.go").write_text('package main\n\nfunc main() { println("mine") }\n')
    return folder


def test_the_list_contains_built_in_programs_and_those_of_the_user(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "batkube"
    folder.mkdir(parents=True)
    (folder / "schedulers.yaml").write_text("mine: {about: packs, module: example.com/mine, default: 0.1.0}\n")

    lines = shell("list").stdout.splitlines()

    assert {"kube-scheduler", "kube-controller-manager", "mine"} <= {line.split()[0] for line in lines}
    assert lines[lines.index(f"{'mine':<24} packs") + 1] == f"  {'0.1.0':<10} –  (default)"
    assert lines[-1] == f"0 built, 0 MB, in {tmp_path}/cache/batkube/programs"


def test_the_list_shows_built_and_outdated_programs(shell: Shell, module: Path, tmp_path: Path) -> None:
    binary = Path(shell("build", "--module", str(module)).stdout.strip())
    current = shell("list").stdout.splitlines()
    binary.parent.rename(binary.parent.parent / "of-an-older-overlay")
    renamed = shell("list").stdout.splitlines()

    assert current[-3:-1] == [
        "your own modules",
        f"  --module {module}: built with {select_toolchain(tmp_path).version}, {binary_size(renamed)}",
    ]
    assert current[-1].startswith("1 built, ")
    assert renamed[-2].startswith("0 built, ")
    assert renamed[-1].startswith("1 outdated, ")


def binary_size(lines: list[str]) -> str:
    """Return the size in the last line of a list."""
    return lines[-1].removeprefix("1 outdated, ").partition(":")[0]


def test_pruning_removes_only_outdated_builds(shell: Shell, module: Path, tmp_path: Path) -> None:
    binary = Path(shell("build", "--module", str(module)).stdout.strip())
    programs = binary.parent.parent
    for name in ("broken-off", "being-built"):
        (programs / name).mkdir()
        (programs / name / "99.partial").write_bytes(bytes(3_000_000))

    with file_lock(lock_of(programs / "being-built"), lambda: None):
        pruned = shell("prune")

    assert pruned.stdout == "freed 3 MB\n"
    assert pruned.stderr.splitlines() == [
        "kept being-built: a build is running",
        "removed broken-off",
    ]
    assert sorted(path.name for path in programs.iterdir() if path.is_dir()) == ["being-built", binary.parent.name]
    assert shell("path", "--module", str(module)).stdout.strip() == str(binary)

    shutil.rmtree(module)
    shell("prune")

    assert not binary.exists()


def test_the_list_works_without_go(shell: Shell, module: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell("build", "--module", str(module))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))

    assert shell("list").stdout.splitlines()[-1].startswith("1 built, ")
    assert "there is no Go toolchain on this machine" in shell("build", "--module", str(module), code=1).stderr
    assert "there is no Go toolchain on this machine" in shell("prune", code=1).stderr


def test_an_unwritable_cache_is_reported(shell: Shell, module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(module / "go.mod"))

    message = shell("build", "--module", str(module), code=2).stderr

    assert message.endswith(
        "cannot be written: Not a directory\n  remedy: set XDG_CACHE_HOME to a folder that you own\n"
    )


def test_a_go_with_changed_sources_is_rejected_with_file_and_version(
    shell: Shell, module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modified = modified_copy(
        select_toolchain(tmp_path), tmp_path / "modified", "runtime/select.go", "cheaprandn", "luckyrandn"
    )
    monkeypatch.setenv("PATH", f"{modified}/bin:/usr/bin:/bin")

    message = shell("build", "--module", str(module), code=1).stderr

    assert message.startswith("failed: the virtual clock does not fit go1.26.99: runtime/select.go has this 0 times")
    assert "cheaprandn(uint32(norder + 1))" in message
    assert not (tmp_path / "cache" / "batkube" / "programs").exists()


def modified_copy(go: Toolchain, folder: Path, file: str, old: str, new: str) -> Path:
    """Copy the parts of a toolchain that the overlay needs, with one text changed."""
    for name in [edit.file for edit in EDITS]:
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(go.root / "src" / name, folder / "src" / name)
    text = (go.root / "src" / file).read_text()
    (folder / "src" / file).write_text(text.replace(old, new))
    (folder / "VERSION").write_text("go1.26.99\n")
    (folder / "bin").mkdir()
    script = folder / "bin" / "go"
    script.write_text(f"""#!/bin/sh\necho '{{"GOROOT": "{folder}", "GOVERSION": "go1.26.99"}}'\n""")
    script.chmod(0o755)
    return folder


def test_building_a_folder_prints_only_its_path_to_standard_output(shell: Shell, module: Path) -> None:
    missing = shell("path", "--module", str(module), code=2)
    build = shell("build", "--module", str(module))
    path = shell("path", "--module", str(module))

    assert "has not been built" in missing.stderr
    assert f"remedy: run `batkube schedulers build --module {module}`" in missing.stderr
    assert build.stdout == path.stdout
    assert "built module" in build.stderr
    process = subprocess.run([build.stdout.strip()], capture_output=True, text=True, check=True)
    assert process.stderr == "mine\n"


def test_a_compile_error_is_reported_with_the_compilers_output(shell: Shell, module: Path) -> None:
    (module / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")

    message = shell("build", "--module", str(module), code=2).stderr

    assert message.endswith("does not compile:\n# example.com/mine\n./main.go:3:15: undefined: undefined\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["build"], "needs either the name of a program or --module"),
        (["build", "etcd", "--module", "."], "needs either the name of a program or --module"),
        (["build", "etcd", "--package", "./cmd/x"], "requires --module"),
        (["build", "slurm"], "is not a program of the catalogue"),
        (["build", "--module", "/nowhere"], "is not a folder with a go.mod"),
        (["build", "kube-scheduler", "--go-version", "1.2"], "is not a version of Go"),
        (["list", "--catalogue", "/nowhere.yaml"], "cannot be read"),
    ],
)
def test_a_usage_error_is_reported_with_a_remedy(shell: Shell, arguments: list[str], problem: str) -> None:
    message = shell(*arguments, code=2).stderr

    assert problem in message
    assert "remedy: " in message
    assert "Traceback" not in message
