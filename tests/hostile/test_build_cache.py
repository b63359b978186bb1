"""The cache of built programs: files that others could have written are not executed, and foreign files are kept."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.commands import run_in_process

from batkube.kernel.errors import InputError
from batkube.schedulers.build.builder import build_path, ensure_built
from batkube.schedulers.build.records import cached_builds, programs_folder
from batkube.schedulers.build.toolchains import local_toolchain
from batkube.schedulers.recipes import BuildRecipe, local_recipe
from schedulers.conftest import needs_go

#: A published program that cannot be downloaded, so it must be found in the cache.
WANTED = BuildRecipe("evil", "example.com/evil", "v1.0.0", ".", virtual=False)
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to somebody else")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that contains a build of the program."""
    folder = tmp_path / "cache"
    binary = build_path(WANTED, folder)
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\nexit 1\n")
    binary.chmod(0o755)
    for place in (binary.parent, binary.parent.parent, folder):
        place.chmod(0o755)
    return folder


def places(cache: Path) -> list[Path]:
    """Return the program and its enclosing folders."""
    binary = build_path(WANTED, cache)
    return [binary, binary.parent, programs_folder(cache), cache]


def test_a_program_that_only_its_owner_can_write_is_used(cache: Path) -> None:
    assert ensure_built(WANTED, cache) == build_path(WANTED, cache)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("who", [stat.S_IWGRP, stat.S_IWOTH])
def test_a_program_that_others_can_write_is_rejected(cache: Path, number: int, who: int) -> None:
    place = places(cache)[number]
    place.chmod(0o755 | who)

    with pytest.raises(InputError, match=f"^{place}: is writable by other users"):
        ensure_built(WANTED, cache)


@as_root
@pytest.mark.parametrize("number", range(4))
def test_a_program_of_another_user_is_rejected(cache: Path, number: int) -> None:
    place = places(cache)[number]
    os.chown(place, NOBODY, NOBODY)

    with pytest.raises(InputError, match=f"^{place}: belongs to another user"):
        ensure_built(WANTED, cache)


@as_root
def test_links_of_or_to_other_users_are_rejected(cache: Path, tmp_path: Path) -> None:
    binary, theirs = build_path(WANTED, cache), tmp_path / "theirs"
    binary.rename(theirs)
    binary.symlink_to(theirs)
    os.chown(theirs, NOBODY, NOBODY)

    with pytest.raises(InputError, match="belongs to another user"):
        ensure_built(WANTED, cache)

    os.chown(theirs, 0, 0)
    os.chown(binary, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(InputError, match="belongs to another user"):
        ensure_built(WANTED, cache)


def test_a_cache_below_a_world_writable_folder_is_rejected(cache: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match=f"^{tmp_path}: is writable by all users"):
        ensure_built(WANTED, cache)

    tmp_path.chmod(0o1777)
    assert ensure_built(WANTED, cache)


def test_a_toolchain_that_others_can_write_is_rejected(tmp_path: Path) -> None:
    go = tmp_path / "cache" / "toolchains" / "go1.26.8" / "bin" / "go"
    go.parent.mkdir(parents=True)
    go.touch()
    go.chmod(0o777)

    with pytest.raises(InputError, match=f"^{go}: is writable by other users"):
        local_toolchain(tmp_path / "cache", "go1.26.8")


@needs_go
def test_builds_are_private_under_any_umask(tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    (module / "go.mod").write_text("module example.com/mine\n\ngo 1.24\n")
    (module / "main.go").write_text("package main\n\nfunc main() {}\n")
    before = os.umask(0)
    try:
        binary = ensure_built(local_recipe(module, "."), tmp_path / "cache")
    finally:
        os.umask(before)

    assert subprocess.run([binary], check=False).returncode == 0
    for place in (binary, binary.parent, binary.parent.parent, tmp_path / "cache"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_pruning_removes_only_builds(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "batkube" / "programs"
    programs.parent.mkdir()
    programs_folder(cache).rename(programs)
    broken_off = programs / "kube-scheduler-v1.0.0-0123456789ab"
    (broken_off / ".source").mkdir(parents=True)
    (broken_off / "17.partial").touch()
    thesis = programs / "chapters" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("years of work\n")
    elsewhere = tmp_path / "elsewhere"
    thesis.parent.rename(elsewhere)
    thesis.parent.mkdir()
    thesis.write_text("more years of work\n")
    (programs / "linked").symlink_to(elsewhere)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    pruned = run_in_process(tmp_path, "schedulers", "prune")

    assert pruned.returncode == 0, pruned.stderr
    assert "kept chapters: no build wrote thesis.tex" in pruned.stderr
    assert not broken_off.exists()
    assert thesis.read_text() == "more years of work\n"
    assert (elsewhere / "thesis.tex").read_text() == "years of work\n"
    assert [kept.folder.name for kept in cached_builds(programs.parent)] == [
        "chapters",
        f"{build_path(WANTED, cache).parent.name}",
    ]
