"""`batkube graph show` draws a graph with the resources of jobs in colour."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from typer.testing import CliRunner

from batkube.cli.app import build_app


def test_allocated_shared_and_down_vertices_are_labelled(graph_file: Path, jobspec_file: Path, tmp_path: Path) -> None:
    script, drawing = tmp_path / "commands", tmp_path / "graph.svg"
    script.write_text(f"match allocate {jobspec_file}\nset-status /cluster0/node1/core3 down\n", encoding="utf-8")
    words = ["-L", str(graph_file), "-f", "jgf", "-P", "low", "--commands", str(script), "-o", str(drawing)]

    assert CliRunner().invoke(build_app("graph"), ["graph", "show", *words]).exit_code == 0

    titles = [title.text or "" for title in ElementTree.parse(drawing).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 11
    assert sorted(title for title in titles if ":" in title) == [
        "cluster0: shared by job 1",
        "core0: held by job 1",
        "core1: held by job 1",
        "core3: down",
        "node0: shared by job 1",
    ]
