"""Tests that build one program after another, or run in real time: only if asked for, as `make test-all` does."""

from __future__ import annotations

import os

import pytest

WANTED = os.environ.get("BATKUBE_SLOW_TESTS") == "1"


def slow(reason: str) -> pytest.MarkDecorator:
    """Return the mark of such a test; `reason` is what takes so long."""
    return pytest.mark.skipif(not WANTED, reason=f"{reason}: make test-all, or BATKUBE_SLOW_TESTS=1")
