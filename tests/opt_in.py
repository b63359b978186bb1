"""Opt-in tests, which build many programs or run in real time: `make test-all` enables them."""

from __future__ import annotations

import os

import pytest

from batkube.kernel.errors import RunFailed
from batkube.schedulers.build.builder import build_path
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe

IS_ENABLED = os.environ.get("BATKUBE_SLOW_TESTS") == "1"


def slow(reason: str) -> pytest.MarkDecorator:
    """Return the mark of an opt-in test; `reason` says what takes so long."""
    return pytest.mark.skipif(not IS_ENABLED, reason=f"{reason}: make test-all, or BATKUBE_SLOW_TESTS=1")


def require_built(*titles: str) -> None:
    """Skip a test unless its programs, which take long to build, are built or opt-in tests are enabled."""
    if IS_ENABLED:
        return
    for title in titles:
        try:
            is_built = build_path(find_recipe(title), cache_folder()).exists()
        except RunFailed as problem:
            pytest.skip(f"needs {title}: {problem}")
        if not is_built:
            pytest.skip(f"needs {title}, which takes minutes to build: `batkube schedulers build {title}`")
