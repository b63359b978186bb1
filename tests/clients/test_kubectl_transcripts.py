"""kubectl has the same output with our API as with a real one: see clients.transcripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clients.kubectl import Kubectl
from clients.serving import Served
from clients.transcripts import FOLDER, Exchange, read, replay

_PADDING = re.compile(r"(?<=\S) {2,}")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*.txt"))])
def test_a_session_has_the_output_of_a_real_server(
    path: Path, bare: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, bare.kubeconfig, tmp_path, path.stem)
    recorded = read(path)

    for expected, actual in zip(recorded, replay(recorded, kubectl), strict=True):
        assert exchange_text(actual) == exchange_text(expected)


def exchange_text(exchange: Exchange) -> str:
    """Return an exchange as in a terminal, without kubectl's padding, whose width depends on ages."""
    return _PADDING.sub("  ", f"$ {exchange.command}\n{exchange.output}\n")
