"""Requests of schedulers: when they are handled, and which ones abort the simulation.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.simulator.simulations import (
    DELAY,
    TASK,
    WATTS,
    Decision,
    EitherBatsim,
    Reaction,
    and_call,
    kinds_at,
    on_first_machines,
)

ONE, PROFILES = [{"profile": "delay"}], {"delay": DELAY, "task": TASK}


def and_send(*decisions: Decision, when: str = "JOB_SUBMITTED") -> Reaction:
    """Execute jobs on the first machines, and send more decisions after the first event of a type."""
    sent: list[str] = []

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        more = [] if kind != when or sent else decisions
        sent.extend([kind] * (kind == when))
        return [*on_first_machines(kind, data), *more]

    return react


@pytest.mark.parametrize(
    "decision",
    [
        ("REJECT_JOB", {"job_id": "w0!0", "more": 1}),
        ("KILL_JOB", {"job_ids": ["w0!0"], "more": 1}),
        ("CALL_ME_LATER", {"timestamp": 2, "more": 1}),
        ("QUERY", {"requests": {}}),
        ("QUERY", {"requests": {"air_temperature_all": {}}}),
        ("QUERY", {"requests": {"consumed_energy": {"of": 1}}}),
        ("ANSWER", {}),
        ("ANSWER", {"something": 1}),
        ("NOTIFY", {"type": "submission_finished"}),
        ("REJECT_JOB", {"job_id": "0"}),
    ],
    ids=str,
)
def test_an_event_that_is_not_in_the_protocol_is_rejected(decision: Decision, batsim: EitherBatsim) -> None:
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)

    batsim(ONE, PROFILES, "-E", react=and_send(decision))

    assert batsim.failure


def test_an_unrequested_estimate_is_ignored(batsim: EitherBatsim) -> None:
    estimate = {"estimate_waiting_time": {"job_id": "w0!0", "estimated_waiting_time": 5}}

    batsim(ONE, PROFILES, react=and_send(("ANSWER", estimate)))

    assert not batsim.failure


def test_a_job_cannot_be_killed_once_it_is_rejected(batsim: EitherBatsim) -> None:
    decisions = [("REJECT_JOB", {"job_id": "w0!0"}), ("KILL_JOB", {"job_ids": ["w0!0"]})]

    batsim(ONE, PROFILES, react=lambda kind, data: decisions if kind == "JOB_SUBMITTED" else [])

    assert "Bad kill: job w0!0 has not been started" in batsim.failure


def registration(job: Mapping[str, Any], profile: Mapping[str, Any] = DELAY) -> Reaction:
    registered_profile = {"workload_name": "dyn", "profile_name": "p", "profile": profile}
    return and_send(
        ("REGISTER_PROFILE", registered_profile),
        ("REGISTER_JOB", {"job_id": "dyn!0", "job": {"subtime": 0, "res": 1, "profile": "p", **job}}),
        ("NOTIFY", {"type": "registration_finished"}),
        when="SIMULATION_BEGINS",
    )


@pytest.mark.parametrize(
    ("job", "profile"),
    [
        ({}, DELAY),
        ({"id": "9"}, DELAY),
        ({"id": "0", "profile": ["p"]}, DELAY),
        ({"id": "0"}, {"type": "usage_trace", "trace": "t.txt"}),
    ],
    ids=["a job without an id", "a job with another id", "a profile name that is not a string", "a trace"],
)
def test_an_invalid_registration_is_rejected(
    job: Mapping[str, Any], profile: Mapping[str, Any], batsim: EitherBatsim
) -> None:
    batsim(ONE, PROFILES, "--enable-dynamic-jobs", react=registration(job, profile))

    assert batsim.failure


def test_a_task_that_began_before_a_call_was_requested_ends_before_the_call(batsim: EitherBatsim) -> None:
    events = batsim([{"profile": "task"}], {"task": TASK}, react=and_call(5))

    assert kinds_at(events, 5) == ["JOB_COMPLETED", "REQUESTED_CALL"]


def test_a_call_may_be_requested_for_a_date_beyond_the_longest_run(batsim: EitherBatsim) -> None:
    """batsched's `energy_bf` does so for jobs without a walltime; our call comes after 292 years."""
    events = batsim([{"profile": "delay"}], {"delay": DELAY}, react=and_call(1e19))

    assert batsim.failure == ""
    assert [kind for at, kind, _ in events if at > 9e9] == ["REQUESTED_CALL", "SIMULATION_ENDS"]
    assert batsim.rows[0]["finish_time"] == "3.000000"
