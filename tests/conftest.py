"""Fixtures for the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data that lies beside the repository (or at $BATKUBE_SHARED_DATA)."""
    folder = Path(os.environ.get("BATKUBE_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("needs the shared test data: set BATKUBE_SHARED_DATA to its folder")
    return folder
