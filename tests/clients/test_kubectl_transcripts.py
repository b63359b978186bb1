"""kubectl prints with our API what it prints with a real one: see clients.transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.kubectl import Kubectl
from clients.serving import Served
from clients.transcripts import FOLDER, play, read


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*.txt"))])
def test_a_session_prints_what_it_did_on_a_real_server(
    path: Path, bare: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    recorded = read(path)

    for then, now in zip(recorded, play(recorded, Kubectl(kubectl_program, bare.kubeconfig, tmp_path, path.stem)), strict=True):
        assert now == then
