"""Invalid JGF files are rejected with the place of the error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import jgf

from batkube.graph import read_graph
from batkube.kernel.errors import InputError


def _add_cycle(graph: dict[str, Any]) -> None:
    graph["graph"]["edges"].append({"source": "2", "target": "1"})


def _set_negative_size(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][3]["metadata"]["size"] = -1


def _remove_root(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][0]["metadata"]["paths"] = {"containment": "/a/b"}


def _duplicate_id(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][3]["id"] = "2"


def _add_edge_to_missing_node(graph: dict[str, Any]) -> None:
    graph["graph"]["edges"].append({"source": "1", "target": "99"})


def _remove_type(graph: dict[str, Any]) -> None:
    del graph["graph"]["nodes"][3]["metadata"]["type"]


def _set_rank_to_text(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][3]["metadata"]["rank"] = "many"


@pytest.mark.parametrize(
    "corrupt",
    [
        _add_cycle,
        _set_negative_size,
        _remove_root,
        _duplicate_id,
        _add_edge_to_missing_node,
        _remove_type,
        _set_rank_to_text,
    ],
)
def test_an_invalid_graph_is_rejected_with_the_place(corrupt: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    graph = jgf()
    corrupt(graph)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(graph), encoding="utf-8")

    with pytest.raises(InputError) as caught:
        read_graph(path, "jgf")

    assert caught.value.at, caught.value
    assert str(path) in str(caught.value)
