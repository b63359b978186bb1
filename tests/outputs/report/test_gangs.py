"""Jobs of many pods in reports."""

from __future__ import annotations

from typing import Any

from tests.outputs.report.reported_runs import MANIFEST, page_of


def test_jobs_of_many_pods_are_listed_by_size_and_by_wait_for_members(make_run: Any) -> None:  # noqa: ANN401
    gang = {"submitted_as": "pod-group", "requested_number_of_resources": 2}
    rows = [
        ("1", 0, 0, 100, "0", {"submitted_as": "pod-group", "member_wait": 0}),
        ("2", 0, 100, 200, "0-1", {**gang, "member_wait": 90, "admitted_time": 7, "evictions": 1}),
        ("3", 0, 200, 300, "0-1", {**gang, "member_wait": 0}),
    ]

    page = page_of(make_run(rows, manifest=MANIFEST))

    assert "Jobs were submitted as pod-group. None was in a deadlock." in page.text
    by_size, longest = (table for table in page.tables if table[0][0] in ("pods", "job"))
    assert by_size[1:] == [["1", "1", "0.00", "0.00", "0"], ["2 to 4", "2", "150.00", "45.00", "1"]]
    assert longest[1:] == [["w0!2", "2", "1 min 30 s", "1 min 40 s"]]
    for words in ("admitted by its scheduler at 7 s", "held nodes for 1 min 30 s", "evictions 1"):
        assert words in page.text, words
