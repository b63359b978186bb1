"""Absences of machines, and their drawing in Gantt charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.outputs.measures.occupancy.service_runs import bars, legend, with_events

from batkube.outputs.gantt.chart import save_gantt
from batkube.outputs.gantt.rows import ABSENT_FILL
from batkube.outputs.measures.occupancy.absences import absences_of
from batkube.outputs.results import Results


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([(10, "fail", "node-0"), (30, "return", "node-0")], [(0, 10, 30)]),
        ([(10, "fail", "node-0 node-1")], [(0, 10, 100), (1, 10, 100)]),
        ([(10, "drain", "node-1"), (30, "uncordon", "node-1")], [(1, 10, 30)]),
        ([(10, "cordon", "node-0"), (20, "fail", "node-0"), (30, "return", "node-0")], [(0, 10, 100)]),
        ([(10, "remove", "node-0"), (30, "add", "node-0")], [(0, 10, 30)]),
        ([(40, "add", "node-1")], [(1, 0, 40)]),
        ([(10, "taint", "node-0"), (20, "label", "node-0"), (30, "fail", "elsewhere")], []),
    ],
)
def test_absences_of_machines_are_read_from_the_journal(
    served: Results, events: Sequence[tuple[float, str, str]], expected: list[tuple[int, float, float]]
) -> None:
    assert [tuple(absence) for absence in absences_of(with_events(served, *events))] == expected


def test_an_absent_machine_is_grey_and_hatched_behind_its_jobs(served: Results, tmp_path: Path) -> None:
    def grey_pixels(results: Results, name: str) -> int:
        save_gantt(results, tmp_path / name)
        with Image.open(tmp_path / name) as image:
            return int((np.asarray(image.convert("RGB")) == int(ABSENT_FILL[1:3], 16)).all(axis=2).sum())

    assert grey_pixels(served, "before.png") < 500
    with_failure = with_events(served, (10, "fail", "node-0"), (30, "return", "node-0"))
    assert grey_pixels(with_failure, "after.png") > 5_000
    assert legend(with_failure) == ["machine not available"]
    assert sorted(bars(with_failure)) == sorted(bars(served))


def test_the_journal_is_not_read_if_no_machine_was_ever_absent(served: Results) -> None:
    served.beside("journal.jsonl").write_text('{"nodes": nonsense')
    served.beside("machine_states.csv").write_text("time,nb_idle,nb_computing,nb_unavailable\n0,1,1,0\n")

    assert absences_of(Results(served.path)) == []
