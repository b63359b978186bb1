"""Real programs for the tests of runs with outside schedulers: built on first use, kept in the user's cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from batkube.cli.caching import cache_folder
from batkube.schedulers.builds import built
from batkube.schedulers.programs import program
from batkube.schedulers.recipes import local_program
from conftest import REPOSITORY


@pytest.fixture(scope="session")
def kube_scheduler() -> str:
    """The path of kube-scheduler 1.34.4 on the virtual clock."""
    _need_go()
    return str(built(program("kube-scheduler@1.34.4"), cache_folder(), print))


@pytest.fixture(scope="session")
def wayward(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the scheduler of tests/go/schedulers, which misbehaves as it is told."""
    _need_go()
    folder = tmp_path_factory.mktemp("wayward") / "source"
    shutil.copytree(REPOSITORY / "tests" / "go" / "schedulers", folder)
    binary = built(local_program(folder, "."), cache_folder())
    return str(Path(shutil.copy(binary, folder.parent / "wayward")))


def _need_go() -> None:
    if shutil.which("go") is None:
        pytest.skip("needs a Go toolchain to build schedulers with")
