"""Tests that build one program after another, or run in real time: only if asked for, as `make test-all` does."""

from __future__ import annotations

import os

import pytest

from batkube.kernel.errors import RunFailed
from batkube.schedulers.build.builder import build_path
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe

WANTED = os.environ.get("BATKUBE_SLOW_TESTS") == "1"


def slow(reason: str) -> pytest.MarkDecorator:
    """Return the mark of such a test; `reason` is what takes so long."""
    return pytest.mark.skipif(not WANTED, reason=f"{reason}: make test-all, or BATKUBE_SLOW_TESTS=1")


def require_built(*titles: str) -> None:
    """Skip a test of programs that take long to build, unless they are built or slow tests are wanted."""
    if WANTED:
        return
    for title in titles:
        try:
            is_built = build_path(find_recipe(title), cache_folder()).exists()
        except RunFailed as problem:
            pytest.skip(f"needs {title}: {problem}")
        if not is_built:
            pytest.skip(f"needs {title}, which takes minutes to build: `batkube schedulers build {title}`")
