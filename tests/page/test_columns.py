"""Columns: a run encoded in pieces is the same as encoded at once."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.outputs.playback.lives import Lives, lives

from batkube.kernel.instants import Instant
from batkube.outputs.playback.deltas import deltas_of
from batkube.outputs.playback.model import NodePeriod, RecordedNode
from batkube.page.columns import ColumnEncoder, resources_of


def joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns of several chunks as one, as the page does."""
    whole = chunks[0]
    for chunk in chunks[1:]:
        for name, column in chunk.items():
            if name == "capacity":
                whole[name] = [one + other for one, other in zip(whole[name], column, strict=True)]
            elif isinstance(column, dict):
                whole[name] = joined([whole[name], column])
            else:
                whole[name] = whole[name] + column if isinstance(column, list) else column
    return whole


@given(lives(), st.lists(st.floats(0, 1), max_size=4))
def test_chunks_are_the_columns_of_the_whole(run: Lives, cuts: list[float]) -> None:
    deltas = deltas_of(*run)
    end = deltas[-1].at
    resources = resources_of(run.nodes)
    whole = ColumnEncoder(resources).chunk(run.nodes, run.jobs, run.pods, deltas, end)
    encoder = ColumnEncoder(resources)
    shares = [0.0, *sorted(cuts), 1.0]

    def part(rows: Any, share: float, next_share: float) -> Any:  # noqa: ANN401 - any of the sequences
        return rows[round(len(rows) * share) : round(len(rows) * next_share)]

    # Nodes first: deltas name them.
    chunks = [encoder.chunk(run.nodes, run.jobs, run.pods, (), end)]
    chunks += [encoder.chunk((), (), (), part(deltas, *pair), end) for pair in itertools.pairwise(shares)]
    columns = joined(chunks)
    # Texts are numbered in the order in which they occur, which is the same here.
    assert columns == whole


def test_usual_resources_come_first() -> None:
    capacity = {"example.com/b": 1, "pods": 110, "cpu": 4000, "nvidia.com/gpu": 2, "example.com/a": 1, "memory": 0}
    node = RecordedNode(0, "n", 0, capacity, "", "", "", (NodePeriod(Instant(0)),))

    assert resources_of([node]) == ("cpu", "nvidia.com/gpu", "pods", "example.com/a", "example.com/b")
