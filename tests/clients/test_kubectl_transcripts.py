"""kubectl prints with our API what it prints with a real one: see clients.transcripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clients.kubectl import Kubectl
from clients.serving import Served
from clients.transcripts import FOLDER, Exchange, play, read

_PADDING = re.compile(r"(?<=\S) {2,}")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*.txt"))])
def test_a_session_prints_what_it_did_on_a_real_server(
    path: Path, bare: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, bare.kubeconfig, tmp_path, path.stem)
    recorded = read(path)

    for then, now in zip(recorded, play(recorded, kubectl), strict=True):
        assert shown(now) == shown(then)


def shown(exchange: Exchange) -> str:
    """Return an exchange as at a terminal, but without kubectl's padding, which is wider once an age is."""
    return _PADDING.sub("  ", f"$ {exchange.command}\n{exchange.output}\n")
