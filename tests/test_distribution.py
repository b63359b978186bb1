"""The distribution: the sdist has every file, the wheel is built from it, and Batkube runs from the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests import opt_in
from tests.conftest import REPOSITORY

from batkube.version import __version__

pytest.importorskip("hatchling", reason="needs `pip install 'batkube[dev]'`")

#: Folders of the repository in the wheel, and their paths in it.
IN_WHEEL = {"src/batkube": "batkube", "go/_std": "batkube/go/_std", "native": "batkube/native"}


def tracked(*folders: str) -> set[str]:
    """Return the tracked files in some folders, or in all."""
    command = ["git", "ls-files", "-z", "--", *folders]
    listing = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("needs a git checkout")
    return {name for name in listing.stdout.split("\0") if name and (REPOSITORY / name).exists()}


def build(source: Path, target: str, folder: Path) -> Path:
    """Build the sdist or the wheel of a source folder with hatchling."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)
    (built,) = folder.glob("*.tar.gz" if target == "sdist" else "*.whl")
    return built


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(REPOSITORY, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked sdist."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    return build(unpacked / f"batkube-{__version__}", "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_sdist_has_every_file_of_the_repository(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert tracked() - names == set()
    assert {"Makefile", "constraints.txt", "docs/index.md", "go/go.mod", "native/clock.h"} <= names


def test_the_wheel_built_from_the_sdist_has_the_package_and_its_data(wheel: Path) -> None:
    expected = {
        inside + name.removeprefix(folder) for folder, inside in IN_WHEEL.items() for name in tracked(folder)
    } | {"batkube/CITATION.cff"}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert expected - names == set()
    assert {name.partition("/")[0] for name in names} == {"batkube"}


def test_batkube_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """It is unpacked, uses the libraries of the tests, and needs no file of the repository."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}

    def run_batkube(
        *words: str, program: str = "import sys; from batkube.cli.main import main; sys.exit(main())"
    ) -> str:
        command = [sys.executable, "-P", "-c", program, *words]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    where = (
        "import batkube; from batkube.schedulers.overlay import go_source_folder; "
        "print(batkube.__file__, go_source_folder())"
    )
    assert all(path.startswith(str(tmp_path)) for path in run_batkube(program=where).split())
    assert __version__ in run_batkube("--version")
    run_batkube("workload", "generate", "burst", "--jobs", "4", "-o", "w.json")
    run_batkube(
        "run", "--workload", "w.json", "--platform", "2x1", "--scheduler", "policy:easy", "--out", "out", "--quiet"
    )
    assert len((tmp_path / "out" / "jobs.csv").read_text(encoding="utf-8").splitlines()) == 5


@opt_in.slow("installs the wheel with all libraries from PyPI")
def test_make_dist_succeeds(tmp_path: Path) -> None:
    assert subprocess.run(["make", "dist", f"DIST={tmp_path / 'dist'}"], cwd=REPOSITORY, check=False).returncode == 0
