"""Real programs for the tests of runs with outside schedulers: built on first use, kept in the user's cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import opt_in
from batkube.schedulers.builds import build_path
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.programs import program


@pytest.fixture(scope="session")
def kept_program() -> Callable[[str], str]:
    """A function that returns the name of a program of the catalogue if that is built; building one takes minutes."""

    def title(wanted: str) -> str:
        if not build_path(program(wanted), cache_folder()).exists() and not opt_in.WANTED:
            pytest.skip(f"needs `batkube schedulers build {wanted}`, or make test-all, which builds it")
        return wanted

    return title
