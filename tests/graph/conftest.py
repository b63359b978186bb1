"""A small graph and a jobspec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def jgf(nodes: int = 2, cores: int = 4) -> dict[str, Any]:
    """Return a cluster of nodes with cores in JGF."""
    vertices: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []

    def add(type: str, id: int, path: str, parent: str | None, **metadata: int) -> str:
        key = str(len(vertices))
        vertices.append({"id": key, "metadata": {"type": type, "id": id, "paths": {"containment": path}, **metadata}})
        if parent is not None:
            edges.append({"source": parent, "target": key})
        return key

    root = add("cluster", 0, "/cluster0", None)
    for number in range(nodes):
        node = add("node", number, f"/cluster0/node{number}", root, rank=number)
        for core in range(cores):
            add("core", core, f"/cluster0/node{number}/core{core}", node, rank=number)
    return {"graph": {"nodes": vertices, "edges": edges}}


JOBSPEC = """\
version: 9999
resources: [{type: node, count: 1, with: [{type: slot, count: 1, label: s, with: [{type: core, count: 2}]}]}]
tasks: [{command: [app], slot: s, count: {per_slot: 1}}]
attributes: {system: {duration: 600}}
"""


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    """A file with two nodes of four cores."""
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(jgf()), encoding="utf-8")
    return path


@pytest.fixture
def jobspec_file(tmp_path: Path) -> Path:
    """A jobspec for two cores of a node."""
    path = tmp_path / "job.yaml"
    path.write_text(JOBSPEC, encoding="utf-8")
    return path
