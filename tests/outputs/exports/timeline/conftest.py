"""A run whose timeline has every kind of item."""

from __future__ import annotations

import pytest
from tests.outputs.playback.saturated_runs import EVENTS, a_run

from batkube.outputs.playback.playback import Playback


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Playback:
    """A run with failures, added nodes, and pods that take time to start."""
    base = tmp_path_factory.mktemp("timeline")
    latencies = base / "latencies.yaml"
    latencies.write_text("start: uniform:0.1,2.3\nreport: uniform:0.1,1.7\n")
    return Playback.read(a_run(base / "out", events=EVENTS, latencies=latencies))
