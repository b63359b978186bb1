"""Notifications of the server: submitters that end, and external events.

Cases of `batsim` are run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

import pytest
from tests.batsim.simulator.simulations import (
    DELAY,
    TASK,
    EitherBatsim,
)

ONE, PROFILES = [{"profile": "delay"}], {"delay": DELAY, "task": TASK}


def test_empty_workloads_and_events_files_are_allowed(batsim: EitherBatsim) -> None:
    empty = batsim.platform.parent / "events.txt"
    empty.write_text("")

    events = batsim([], {}, "--events", str(empty))

    assert not batsim.failure
    assert [data["type"] for _, kind, data in events if kind == "NOTIFY"] == [
        "no_more_static_job_to_submit",
        "no_more_external_event_to_occur",
    ]


def test_an_event_without_machines_is_not_reported(batsim: EitherBatsim) -> None:
    events_file = batsim.platform.parent / "events.txt"
    events_file.write_text('{"timestamp": 1, "type": "machine_unavailable", "resources": ""}\n')

    events = batsim(ONE, PROFILES, "--events", str(events_file))

    assert not [data for _, kind, data in events if data.get("type") == "event_machine_unavailable"]


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        (["machine_unavailable"] * 2, "already in UNAVAILABLE state"),
        (["machine_available"], "was not in UNAVAILABLE state"),
    ],
)
def test_the_availability_of_a_machine_must_change(kinds: list[str], problem: str, own_batsim: EitherBatsim) -> None:
    events_file = own_batsim.platform.parent / "events.txt"
    events_file.write_text("".join(f'{{"timestamp": 1, "type": "{kind}", "resources": "2"}}\n' for kind in kinds))

    own_batsim(ONE, PROFILES, "--events", str(events_file))

    assert problem in own_batsim.failure


def test_availability_is_reported_with_the_machines(own_batsim: EitherBatsim) -> None:
    events_file = own_batsim.platform.parent / "events.txt"
    events_file.write_text(
        '{"timestamp": 1, "type": "machine_unavailable", "resources": "1-2"}\n'
        '{"timestamp": 2, "type": "machine_available", "resources": "1"}\n'
    )

    events = own_batsim(ONE, PROFILES, "--events", str(events_file))

    reports = [
        (at, data["type"], data["resources"]) for at, kind, data in events if kind == "NOTIFY" and "resources" in data
    ]
    assert reports == [(1.0, "event_machine_unavailable", "1-2"), (2.0, "event_machine_available", "1")]
