"""Pods that were not placed, in reports."""

from __future__ import annotations

from typing import Any

from tests.outputs.report.reported_runs import MANIFEST, ROWS, page_of


def pod(name: str, **cells: object) -> dict[str, object]:
    return {
        "pod": name,
        "job_id": "1",
        "workload_name": "w0",
        "created": 0,
        "phase": "Succeeded",
        "attempts": 1,
        **cells,
    }


def test_pods_that_were_not_placed_are_listed_by_reason(make_run: Any) -> None:  # noqa: ANN401
    short = "0/16 nodes are available: 16 Insufficient cpu."
    pods = [
        pod("p1", scheduled=0, started=0, finished=100),
        pod("p2", scheduled=30, started=30, finished=60, attempts=4, last_reason=short),
        pod("p3", scheduled=50, started=50, finished=60, attempts=6, last_reason=short.replace("16", "12")),
        pod("p4", finished=90, phase="Failed", attempts=9, last_reason="no node has a <GPU>"),
    ]

    page = page_of(make_run(ROWS, manifest=MANIFEST, pods=pods))

    assert "Of 4 pods 1 were never placed, 2 were placed after more than one attempt." in page.text
    never, retried = (table for table in page.tables if table[0][0] == "last reason")
    assert never[1] == ["no node has a <GPU>", "1", "9", "90.00", "p4"]
    assert retried[1] == [short, "2", "6", "50.00", "p2, p3"]
