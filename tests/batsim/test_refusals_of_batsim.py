"""What schedulers may not say, on which Batsim aborts and which ours refuses; and what only looks as if it were such.

Each case runs on both where a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.test_our_batsim import Decision, on_first_machines
from tests.batsim.test_ways_of_batsim import DELAY, TASK, WATTS, Play, play

__all__ = ["play"]  # the fixture
ONE, PROFILES = [{"profile": "delay"}], {"delay": DELAY, "task": TASK}
#: Machines that compute at two speeds (0, 1) and sleep (2); ways to sleep (3) take 2 s and back (4) 20 s.
SPEEDS = 'speed="1Gf,0.5Gf,1e-9Mf,0.5f,0.05f" pstate="0"'
SLEEPY = (
    '<prop id="wattage_per_state" value="30:35:100, 20:20:60, 9.75:9.75:9.75, 200.9:200.9:200.9, 425.1:425.1:425.1"/>'
    '<prop id="wattage_off" value="9.75"/><prop id="sleep_pstates" value="2:3:4"/>'
)
Reaction = Callable[[str, Mapping[str, Any]], Sequence[Decision]]


def and_say(*decisions: Decision, when: str = "JOB_SUBMITTED") -> Reaction:
    """Start jobs on the first machines, and say something more when the first event of a kind comes."""
    said: list[str] = []

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        more = [] if kind != when or said else decisions
        said.extend([kind] * (kind == when))
        return [*on_first_machines(kind, data), *more]

    return react


def instead(**data: object) -> Reaction:
    """Start jobs with these members of EXECUTE_JOB."""
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
def test_what_the_protocol_does_not_know_is_refused(decision: Decision, play: Play) -> None:
    play.platform = silent_platform(play.platform.parent, 4, inside=WATTS)

    play(ONE, PROFILES, "-E", react=and_say(decision))

    assert play.failure


def test_an_estimate_that_nobody_asked_for_is_passed_over(play: Play) -> None:
    estimate = {"estimate_waiting_time": {"job_id": "w0!0", "estimated_waiting_time": 5}}

    play(ONE, PROFILES, react=and_say(("ANSWER", estimate)))

    assert not play.failure


def test_a_job_cannot_be_killed_once_it_is_rejected(play: Play) -> None:
    decisions = [("REJECT_JOB", {"job_id": "w0!0"}), ("KILL_JOB", {"job_ids": ["w0!0"]})]

    play(ONE, PROFILES, react=lambda kind, data: decisions if kind == "JOB_SUBMITTED" else [])

    assert "Bad kill: job w0!0 has not been started" in play.failure


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
    ids=["no storages", "from 2 to 1", "to compute on a storage", "a storage for what runs beside a job"],
)
def test_an_execution_that_cannot_be_is_refused(profile: str, execution: Mapping[str, Any], play: Play) -> None:
    play([{"profile": profile}], PROFILES, "-r", "host3:storage", react=instead(**execution))

    assert play.failure


def test_a_storage_may_take_part_in_a_job_that_computes_nothing(play: Play) -> None:
    play(ONE, PROFILES, "-r", "host3:storage", react=instead(alloc="3"))

    assert play.rows[0]["final_state"] == "COMPLETED_SUCCESSFULLY"


def registration(job: Mapping[str, Any], profile: Mapping[str, Any] = DELAY) -> Reaction:
    described = {"workload_name": "dyn", "profile_name": "p", "profile": profile}
    return and_say(
        ("REGISTER_PROFILE", described),
        ("REGISTER_JOB", {"job_id": "dyn!0", "job": {"subtime": 0, "res": 1, "profile": "p", **job}}),
        ("NOTIFY", {"type": "registration_finished"}),
        when="SIMULATION_BEGINS",
    )


@pytest.mark.parametrize(
    ("job", "profile"),
    [({}, DELAY), ({"id": "9"}, DELAY), ({"id": "0"}, {"type": "usage_trace", "trace": "t.txt"})],
    ids=["a job without an id", "a job of another id", "a trace"],
)
def test_what_cannot_be_registered_is_refused(job: Mapping[str, Any], profile: Mapping[str, Any], play: Play) -> None:
    play(ONE, PROFILES, "--enable-dynamic-jobs", react=registration(job, profile))

    assert play.failure


@pytest.mark.parametrize("code", [-1, -3])
def test_codes_that_mean_something_else_are_no_codes_of_jobs(code: int, play: Play) -> None:
    """-1 is what a walltime leaves behind, -2 a kill; below there is nothing."""
    play(ONE, {"delay": {**DELAY, "ret": code}})

    if code == -1:
        assert play.rows[0]["final_state"] == "COMPLETED_WALLTIME_REACHED"
    else:
        assert f"completed with unknown return code: {code}" in play.failure


def switching(*requests: tuple[float, str, str]) -> Reaction:
    """Start jobs on the first machines, and ask for power states at dates."""
    left = iter(requests)

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "SIMULATION_BEGINS":
            return [("CALL_ME_LATER", {"timestamp": date}) for date, _, _ in requests]
        if kind == "REQUESTED_CALL":
            _, machines, state = next(left)
            return [("SET_RESOURCE_STATE", {"resources": machines, "state": state})]
        return on_first_machines(kind, data)

    return react


def changes(events: Sequence[tuple[float, str, Mapping[str, Any]]]) -> list[tuple[float, str, str]]:
    return [(at, data["resources"], data["state"]) for at, kind, data in events if kind == "RESOURCE_STATE_CHANGED"]


def test_a_switch_that_cannot_be_now_is_never_done_and_does_no_harm(play: Play) -> None:
    """Machine 1 is on its way to sleep when it is asked to go, and to come: both requests wait for ever.

    The second request for sleep is done with the next sleep of machine 1, for which another one then waits.
    """
    play.platform = silent_platform(play.platform.parent, 4, more=SPEEDS, inside=SLEEPY)
    requests = (1, "0-1", "2"), (1.5, "1-2", "2"), (1.7, "1", "0"), (1.8, "3", "4"), (60, "0-2", "0"), (120, "1", "2")

    events = play([{"profile": "delay", "subtime": 300}], PROFILES, "-E", react=switching(*requests))

    assert not play.failure
    assert changes(events) == [(3.0, "0-1", "2"), (80.0, "1", "0"), (122.0, "1-2", "2")]


@pytest.mark.parametrize("state", ["9", "-1"])
def test_a_power_state_that_is_not_there_is_refused(state: str, play: Play) -> None:
    play.platform = silent_platform(play.platform.parent, 4, more=SPEEDS, inside=SLEEPY)

    play(ONE, PROFILES, "-E", react=switching((1, "1", state)))

    assert play.failure


def test_a_workload_without_jobs_and_events_without_any_are_no_fault(play: Play) -> None:
    nothing = play.platform.parent / "events.txt"
    nothing.write_text("")

    events = play([], {}, "--events", str(nothing))

    assert not play.failure
    assert [data["type"] for _, kind, data in events if kind == "NOTIFY"] == [
        "no_more_static_job_to_submit",
        "no_more_external_event_to_occur",
    ]


def test_an_event_of_no_machines_is_not_told(play: Play) -> None:
    nobody = play.platform.parent / "events.txt"
    nobody.write_text('{"timestamp": 1, "type": "machine_unavailable", "resources": ""}\n')

    events = play(ONE, PROFILES, "--events", str(nobody))

    assert not [data for _, kind, data in events if data.get("type") == "event_machine_unavailable"]


def test_a_pattern_may_name_classes_of_characters(play: Play) -> None:
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

    play([{"profile": "talk"}, {"profile": "delay", "subtime": 50}], profiles, react=react)

    assert play.rows[0]["execution_time"] == "4.000000"
