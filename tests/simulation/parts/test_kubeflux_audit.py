"""The audit file of KubeFlux is read completely, or the run fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import RunFailed
from batkube.simulation.parts.kubeflux_audit import KubeFluxAuditReader

LINE = b'{"kind":"phantom-pod","node":"a","pod":"default/p","amounts":{},"at":0,"is":"new"}\n'


@pytest.mark.parametrize("content", [LINE + LINE[:-9], LINE[:20], b""])
def test_a_cut_audit_file_fails_the_run(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(LINE)
    reader = KubeFluxAuditReader(path)
    assert [line["node"] for line in reader.read_new_lines()] == ["a"]

    path.write_bytes(content)

    with pytest.raises(RunFailed, match="is incomplete"):
        reader.read_new_lines()
