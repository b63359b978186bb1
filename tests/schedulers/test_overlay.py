"""The overlay: generated from the toolchain, or rejected with a reason."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from batkube.kernel.errors import RunFailed
from batkube.schedulers.build.toolchains import Toolchain, select_toolchain
from batkube.schedulers.overlay import go_source_folder, overlay_digest, overlay_files, write_overlay
from batkube.schedulers.overlay_edits import EDITS, MAP_ORDER
from conftest import REPOSITORY
from schedulers.conftest import GO_VERSIONS, real_go, user_cache


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    if real_go() is None:
        pytest.skip("needs a Go toolchain")
    return select_toolchain(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def minimal_go(tmp_path: Path) -> Path:
    """A Go installation that contains only the anchors of the edits."""
    (tmp_path / "VERSION").write_text("go1.26.3\ntime 2026-01-01T00:00:00Z\n")
    for edit in EDITS:
        path = tmp_path / "src" / edit.file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(edit.find + "\n")
    folder = tmp_path / "src" / MAP_ORDER.file
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("table.go", "runtime.go", "map_test.go"):
        (folder / name).write_text(f"{MAP_ORDER.find}\n{MAP_ORDER.find}\n")
    return tmp_path


def test_the_overlay_contains_every_edit_and_every_added_file(minimal_go: Path) -> None:
    files = overlay_files(minimal_go)

    for edit in EDITS:
        assert edit.replacement in files[edit.file]
    source_folder = go_source_folder() / "_std"
    for path in source_folder.rglob("*.go"):
        assert path.relative_to(source_folder).as_posix() in files


def test_every_map_lookup_is_edited(minimal_go: Path) -> None:
    files = overlay_files(minimal_go)

    changed = {name: text for name, text in files.items() if MAP_ORDER.replacement in text}
    assert changed == {
        f"{MAP_ORDER.file}/{name}": f"{MAP_ORDER.replacement}\n{MAP_ORDER.replacement}\n"
        for name in ("runtime.go", "table.go")
    }


def test_a_go_with_another_map_lookup_is_rejected(minimal_go: Path) -> None:
    for path in (minimal_go / "src" / MAP_ORDER.file).iterdir():
        path.write_text("package maps\n")

    with pytest.raises(RunFailed, match=r"go1\.26\.3: internal/runtime/maps .*makeProbeSeq"):
        overlay_files(minimal_go)


@pytest.mark.parametrize("copies", [0, 2])
def test_an_anchor_that_does_not_occur_once_is_reported_with_file_and_version(minimal_go: Path, copies: int) -> None:
    path = minimal_go / "src" / "runtime/select.go"
    path.write_text(path.read_text() * copies)

    with pytest.raises(RunFailed, match=r"go1\.26\.3: runtime/select\.go .*cheaprandn"):
        overlay_files(minimal_go)


def test_a_missing_file_is_reported(minimal_go: Path) -> None:
    (minimal_go / "src" / "runtime/select.go").unlink()

    with pytest.raises(RunFailed, match=r"go1\.26\.3: it has no runtime/select\.go"):
        overlay_files(minimal_go)


@pytest.mark.parametrize("version", ["go1.23.4", "go1.28.0", "devel"])
def test_an_unsupported_go_version_is_rejected(minimal_go: Path, version: str) -> None:
    (minimal_go / "VERSION").write_text(f"{version}\n")

    with pytest.raises(RunFailed, match=f"not {version}"):
        overlay_files(minimal_go)


def test_older_versions_use_the_old_path_of_raw_system_calls(minimal_go: Path) -> None:
    older = overlay_files(minimal_go)["runtime/virtual_network.go"]
    (minimal_go / "src" / "internal/runtime/syscall/linux").mkdir(parents=True)
    newer = overlay_files(minimal_go)["runtime/virtual_network.go"]

    assert '\tlinux "internal/runtime/syscall"\n' in older
    assert '\t"internal/runtime/syscall/linux"\n' in newer


def test_the_overlay_is_written_in_the_format_of_go_build(minimal_go: Path, tmp_path: Path) -> None:
    files = overlay_files(minimal_go)
    listing = write_overlay(files, minimal_go, tmp_path / "overlay")

    replacements = json.loads(listing.read_text())["Replace"]
    assert {name: Path(path).read_text() for name, path in replacements.items()} == {
        str(minimal_go / "src" / name): text for name, text in files.items()
    }


def test_the_digest_changes_with_any_file(minimal_go: Path) -> None:
    files = overlay_files(minimal_go)

    assert overlay_digest(files) == overlay_digest(dict(reversed(files.items())))
    assert overlay_digest(files) != overlay_digest({**files, "runtime/select.go": "changed"})


def test_an_installed_batkube_contains_its_go_files() -> None:
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]

    # The first place that go_source_folder() checks: inside the Python package.
    assert build["targets"]["wheel"]["force-include"]["go/_std"] == "batkube/go/_std"
    assert (REPOSITORY / "go/_std" / "runtime").is_dir()


def test_the_go_files_are_formatted(go: Toolchain) -> None:
    folders = [str(go_source_folder()), str(REPOSITORY / "tests" / "go")]
    process = subprocess.run(
        [str(go.root / "bin" / "gofmt"), "-l", *folders], capture_output=True, text=True, check=True
    )

    assert process.stdout == ""


def test_the_go_tests_pass(go: Toolchain, tmp_path: Path) -> None:
    overlay = write_overlay(overlay_files(go.root), go.root, tmp_path)

    process = subprocess.run(
        go.command_line(["test", "-v", "-count=1", "-trimpath", "-overlay", str(overlay), "./..."]),
        cwd=go_source_folder(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 0, process.stdout + process.stderr
    assert "--- PASS" in process.stdout
    assert "--- SKIP" not in process.stdout


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_the_overlay_compiles_and_links_for_both_architectures(
    go: Toolchain, version: str, architecture: str, tmp_path: Path
) -> None:
    (tmp_path / "go.mod").write_text("module example.com/talker\n\ngo 1.24\n")
    (tmp_path / "main.go").write_text(
        'package main\n\nimport "net"\n\nfunc main() { net.Dial("tcp", "127.0.0.1:1") }\n'
    )
    go = select_toolchain(user_cache(), exactly=version) if version else go
    overlay = write_overlay(overlay_files(go.root), go.root, tmp_path / "overlay")

    process = subprocess.run(
        go.command_line(["build", "-trimpath", "-overlay", str(overlay), "-o", "talker"]),
        cwd=tmp_path,
        env={**os.environ, "GOARCH": architecture},
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 0, process.stderr
    # The field of an ELF header with the machine type.
    machine = int.from_bytes((tmp_path / "talker").read_bytes()[18:20], "little")
    assert machine == {"amd64": 62, "arm64": 183}[architecture]
