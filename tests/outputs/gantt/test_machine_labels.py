"""Labels of machines."""

from __future__ import annotations

from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.gantt.machine_labels import row_names


def test_a_thousand_machines_are_named_by_group() -> None:
    names = [*(f"cpu-{n}" for n in range(600)), *(f"gpu-{n}" for n in range(300)), *(f"big-{n}" for n in range(100))]

    rows = row_names(names, 7.6, FigureLabels())

    assert [name for _, name in rows.names] == ["cpu-0…599", "gpu-0…299", "big-0…99"]
    assert [place for place, _ in rows.names] == [300, 750, 950]
    assert rows.borders == [600, 900]


def test_some_machines_of_a_large_group_are_named_and_all_of_a_small_one() -> None:
    large = row_names([f"node-{n}" for n in range(1000)], 7.6, FigureLabels())
    small = row_names(["a-0", "b-0", "c-7"], 1.4, FigureLabels())

    assert [name for _, name in large.names][:3] == ["node-0", "node-50", "node-100"]
    assert not large.borders
    assert small.names_every_machine
    assert [name for _, name in small.names] == ["a-0", "b-0", "c-7"]
