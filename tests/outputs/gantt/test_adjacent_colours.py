"""Fills of adjacent boxes differ."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from batkube.outputs.charts.palette import FILLS, lightness
from batkube.outputs.gantt.adjacent_colours import MIN_LIGHTNESS_DIFFERENCE, distinct_fills
from batkube.outputs.gantt.lanes import Boxes


def test_adjacent_boxes_of_an_overview_differ_in_grey() -> None:
    """Of 4,000 boxes at random positions, nine in ten adjacent pairs differ; with fills by id, two in three do."""
    random = np.random.default_rng(7)
    left, top = random.permutation(np.stack(np.divmod(np.arange(4000), 50), axis=1)).T * 1.0
    numbers = np.arange(4000)
    boxes = Boxes(numbers, np.zeros(4000, bool), left, left + 1, top, top + 1)
    fills_by_id = [FILLS[number % 8] for number in numbers]

    def share_of_similar_pairs(fills: list[str]) -> float:
        fill_at = pd.Series(fills, index=pd.MultiIndex.from_arrays([left, top]))
        pairs = [
            (fill_at[x, y], fill_at[x + dx, y + dy])
            for x, y in fill_at.index
            for dx, dy in ((0, 1), (1, 0))
            if (x + dx, y + dy) in fill_at.index
        ]
        return sum(abs(lightness(one) - lightness(other)) < MIN_LIGHTNESS_DIFFERENCE for one, other in pairs) / len(
            pairs
        )

    assert share_of_similar_pairs(fills_by_id) > 0.3
    assert share_of_similar_pairs(distinct_fills(fills_by_id, boxes, 50, 0.0, 80.0, in_grey=True)) < 0.08


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), min_size=2, max_size=60, unique=True))
def test_adjacent_boxes_have_different_colours(cells: list[tuple[int, int]]) -> None:
    machine, time = np.array(cells).T
    numbers = np.arange(len(cells))
    boxes = Boxes(
        job=numbers,
        left=time * 1.0,
        right=time + 1.0,
        top=machine * 1.0,
        bottom=machine + 1.0,
        lost=np.zeros(len(cells), bool),
    )

    fills = distinct_fills(["#77AADD"] * len(cells), boxes, 20, 0.0, 20.0)

    box_at = {cell: number for number, cell in enumerate(cells)}
    for (row, column), number in box_at.items():
        for neighbour in ((row + 1, column), (row, column + 1)):
            if neighbour in box_at:
                assert fills[number] != fills[box_at[neighbour]]
