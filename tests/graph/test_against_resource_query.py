"""Random sessions have the same output with `batkube graph query` and Fluxion's resource-query.

Requires a `resource-query` on the PATH (docs/explanation/graph-matching.md says how to build one). `BATKUBE_SESSIONS=N`
sets the number of sessions. Two commands are excluded: `remove`, after which Fluxion miscounts the resources of jobs
that held removed vertices, and `find agfilter=true`, which in Fluxion uses the time of day and here the session's time,
zero.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.graph.random_sessions import SessionMaker
from typer.testing import CliRunner

from batkube.cli.app import build_app

SESSIONS = int(os.environ.get("BATKUBE_SESSIONS", "50"))


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_a_random_session_has_the_same_output(seed: int, tmp_path: Path) -> None:
    program = shutil.which("resource-query")
    if program is None:
        pytest.skip("no resource-query on the PATH")
    options, commands = SessionMaker(tmp_path, seed).session()
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    subprocess.run(
        [program, *options, "-d", "-t", str(theirs)],
        input=commands,
        text=True,
        capture_output=True,
        check=True,
        timeout=60,
    )
    CliRunner().invoke(build_app("graph"), ["graph", "query", *options, "-t", str(ours)], input=commands)

    assert ours.read_text(encoding="utf-8") == theirs.read_text(encoding="utf-8")
