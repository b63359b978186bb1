"""Runs to explain."""

from __future__ import annotations

import pytest
from tests.outputs.playback.saturated_runs import EVENTS, a_run

from batkube.outputs.playback.playback import Playback


@pytest.fixture(scope="session")
def shared_nodes(tmp_path_factory: pytest.TempPathFactory) -> Playback:
    """A run on shared nodes, some of which fail, are cordoned, or are added."""
    out = tmp_path_factory.mktemp("explained") / "out"
    return Playback.read(a_run(out, resources="requests", events=EVENTS))
