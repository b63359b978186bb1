"""Columns of events."""

from __future__ import annotations

from tests.api.groups.printed_cells import printed


def test_both_forms_of_an_event_are_printed_equally() -> None:
    old = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec"},
        "message": " pulled\n",
        "firstTimestamp": "2026-11-15T20:30:00Z",
        "lastTimestamp": "2026-11-15T20:39:00Z",
        "count": 4,
        "source": {"component": "kubelet", "host": "n1"},
    }
    new = {
        "metadata": {"name": "e"},
        "regarding": old["involvedObject"],
        "note": old["message"],
        "deprecatedFirstTimestamp": old["firstTimestamp"],
        "deprecatedLastTimestamp": old["lastTimestamp"],
        "deprecatedCount": 4,
        "deprecatedSource": old["source"],
    }

    assert printed("events", old) == printed("events.events.k8s.io", new)
    assert list(printed("events", old).values()) == [
        *("60s", "", "", "pod/web", "spec", "kubelet, n1", "pulled", "10m", 4, "e"),
    ]
