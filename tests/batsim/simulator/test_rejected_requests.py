"""Requests on which Batsim aborts and that our Batsim rejects, and some that only look like these.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    on_first_machines,
)

ONE, PROFILES = [{"profile": "delay"}], {"delay": DELAY, "task": TASK}
#: Machines with two speeds (0, 1) and a sleep state (2); the transition to sleep (3) takes 2 s, that back (4) 20 s.
SPEEDS = 'speed="1Gf,0.5Gf,1e-9Mf,0.5f,0.05f" pstate="0"'
SLEEPY = (
    '<prop id="wattage_per_state" value="30:35:100, 20:20:60, 9.75:9.75:9.75, 200.9:200.9:200.9, 425.1:425.1:425.1"/>'
    '<prop id="wattage_off" value="9.75"/><prop id="sleep_pstates" value="2:3:4"/>'
)


def and_send(*decisions: Decision, when: str = "JOB_SUBMITTED") -> Reaction:
    """Execute jobs on the first machines, and send more decisions after the first event of a type."""
    sent: list[str] = []

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        more = [] if kind != when or sent else decisions
        sent.extend([kind] * (kind == when))
        return [*on_first_machines(kind, data), *more]

    return react


def with_members(**data: object) -> Reaction:
    """Execute jobs with these members of EXECUTE_JOB."""
    return lambda kind, event: [("EXECUTE_JOB", {"job_id": event["job_id"], **data})] if kind == "JOB_SUBMITTED" else []


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


@pytest.mark.parametrize(
    ("profile", "execution"),
    [
        ("delay", {"alloc": "0", "storage_mapping": {}}),
        ("delay", {"alloc": "2-1"}),
        ("task", {"alloc": "3"}),
        (
            "task",
            {
                "alloc": "0",
                "additional_io_job": {
                    "alloc": "0",
                    "profile_name": "io",
                    "profile": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1e6, "bytes_to_write": 0},
                },
            },
        ),
    ],
    ids=["empty storage mapping", "descending interval", "computation on a storage", "storage in an I/O job"],
)
def test_an_impossible_execution_is_rejected(profile: str, execution: Mapping[str, Any], batsim: EitherBatsim) -> None:
    batsim([{"profile": profile}], PROFILES, "-r", "host3:storage", react=with_members(**execution))

    assert batsim.failure


def test_a_job_without_computation_may_use_a_storage(batsim: EitherBatsim) -> None:
    batsim(ONE, PROFILES, "-r", "host3:storage", react=with_members(alloc="3"))

    assert batsim.rows[0]["final_state"] == "COMPLETED_SUCCESSFULLY"


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


@pytest.mark.parametrize("code", [-1, -3])
def test_return_codes_below_zero_are_those_of_walltimes_and_kills(code: int, batsim: EitherBatsim) -> None:
    """-1 means the walltime, -2 a kill; lower codes are unknown."""
    batsim(ONE, {"delay": {**DELAY, "ret": code}})

    if code == -1:
        assert batsim.rows[0]["final_state"] == "COMPLETED_WALLTIME_REACHED"
    else:
        assert f"completed with unknown return code: {code}" in batsim.failure


def switching(*requests: tuple[float, str, str]) -> Reaction:
    """Execute jobs on the first machines, and request power states at dates."""
    remaining = iter(requests)

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "SIMULATION_BEGINS":
            return [("CALL_ME_LATER", {"timestamp": date}) for date, _, _ in requests]
        if kind == "REQUESTED_CALL":
            _, machines, state = next(remaining)
            return [("SET_RESOURCE_STATE", {"resources": machines, "state": state})]
        return on_first_machines(kind, data)

    return react


def switches(events: Sequence[tuple[float, str, Mapping[str, Any]]]) -> list[tuple[float, str, str]]:
    return [(at, data["resources"], data["state"]) for at, kind, data in events if kind == "RESOURCE_STATE_CHANGED"]


def test_a_switch_that_is_not_possible_now_stays_pending_without_effect(batsim: EitherBatsim) -> None:
    """Machine 1 is switching off when it is requested to switch off and on: both requests stay pending.

    The second request to sleep is completed by the next sleep of machine 1, whose own request then stays pending.
    """
    batsim.platform = silent_platform(batsim.platform.parent, 4, more=SPEEDS, inside=SLEEPY)
    requests = (1, "0-1", "2"), (1.5, "1-2", "2"), (1.7, "1", "0"), (1.8, "3", "4"), (60, "0-2", "0"), (120, "1", "2")

    events = batsim([{"profile": "delay", "subtime": 300}], PROFILES, "-E", react=switching(*requests))

    assert not batsim.failure
    assert switches(events) == [(3.0, "0-1", "2"), (80.0, "1", "0"), (122.0, "1-2", "2")]


@pytest.mark.parametrize("state", ["9", "-1"])
def test_a_power_state_that_does_not_exist_is_rejected(state: str, batsim: EitherBatsim) -> None:
    batsim.platform = silent_platform(batsim.platform.parent, 4, more=SPEEDS, inside=SLEEPY)

    batsim(ONE, PROFILES, "-E", react=switching((1, "1", state)))

    assert batsim.failure


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


def test_a_regex_may_contain_character_classes(batsim: EitherBatsim) -> None:
    profiles = {
        "talk": {"type": "composed", "seq": ["ask", "hear"]},
        "ask": {"type": "send", "msg": {"a": 1}, "sleeptime": 1},
        "hear": {"type": "recv", "regex": "[[:alpha:]_]+ [[:digit:]]", "success": "delay", "failure": "long"},
        "long": {"type": "delay", "delay": 20},
        **PROFILES,
    }

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "FROM_JOB_MSG":
            return [("TO_JOB_MSG", {"job_id": data["job_id"], "msg": "yes_sir 7"})]
        return list(on_first_machines(kind, data))

    batsim([{"profile": "talk"}, {"profile": "delay", "subtime": 50}], profiles, react=react)

    assert batsim.rows[0]["execution_time"] == "4.000000"
