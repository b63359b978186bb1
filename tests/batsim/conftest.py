"""Fixtures for tests that run with our Batsim, and most of them also with the real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.batsim.real_batsim import real_batsim
from tests.batsim.simulator.simulations import OURS, REAL, EitherBatsim


@pytest.fixture(params=[OURS, REAL])
def batsim(request: pytest.FixtureRequest, tmp_path: Path) -> EitherBatsim:
    """Our Batsim, and the real one if it is installed."""
    if request.param == REAL:
        real_batsim()
    return EitherBatsim(tmp_path, request.param)


@pytest.fixture
def own_batsim(tmp_path: Path) -> EitherBatsim:
    """Our Batsim."""
    return EitherBatsim(tmp_path, OURS)
