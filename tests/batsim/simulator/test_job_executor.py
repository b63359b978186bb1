"""The execution of jobs: profiles, messages, walltimes, kills and return codes.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.batsim.simulator.simulations import (
    DELAY,
    TASK,
    Decision,
    EitherBatsim,
    and_call,
    kinds_at,
    on_first_machines,
)

ONE, PROFILES = [{"profile": "delay"}], {"delay": DELAY, "task": TASK}


@pytest.mark.parametrize("code", [-1, -3])
def test_return_codes_below_zero_are_those_of_walltimes_and_kills(code: int, batsim: EitherBatsim) -> None:
    """-1 means the walltime, -2 a kill; lower codes are unknown."""
    batsim(ONE, {"delay": {**DELAY, "ret": code}})

    if code == -1:
        assert batsim.rows[0]["final_state"] == "COMPLETED_WALLTIME_REACHED"
    else:
        assert f"completed with unknown return code: {code}" in batsim.failure


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


@pytest.mark.parametrize(
    ("profile", "state"), [(TASK, "COMPLETED_SUCCESSFULLY"), (DELAY, "COMPLETED_WALLTIME_REACHED")]
)
def test_a_walltime_as_long_as_the_job_is_reached_by_delays_and_not_by_tasks(
    profile: Mapping[str, Any], state: str, batsim: EitherBatsim
) -> None:
    batsim([{"profile": "p", "walltime": 5 if profile is TASK else 3}], {"p": profile})

    assert batsim.rows[0]["final_state"] == state


def kill_at_once(kind: str, data: Mapping[str, Any]) -> list[Decision]:
    decisions = on_first_machines(kind, data)
    return [*decisions, ("KILL_JOB", {"job_ids": [data["job_id"]]})] if decisions else []


def test_the_message_of_a_job_is_lost_if_the_job_is_killed_before_its_receipt(batsim: EitherBatsim) -> None:
    events = batsim([{"profile": "say"}], {"say": {"type": "send", "msg": {"a": 1}}}, react=kill_at_once)

    assert [kind for _, kind, _ in events if "JOB" in kind] == ["JOB_SUBMITTED", "JOB_COMPLETED", "JOB_KILLED"]


def test_the_message_is_also_lost_if_another_job_is_killed_first(batsim: EitherBatsim) -> None:
    """The jobs are killed in two rounds. In the first one, the second job only finds the mailbox for its message."""

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if data.get("job_id") != "w0!1" or kind != "JOB_SUBMITTED":
            return on_first_machines(kind, data)
        kill: Decision = ("KILL_JOB", {"job_ids": ["w0!0", "w0!1"]})
        return [("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "1"}), kill]

    say = {"type": "send", "msg": {"a": 1}}
    events = batsim([{"profile": "delay"}, {"profile": "say", "subtime": 1}], {"delay": DELAY, "say": say}, react=react)

    assert kinds_at(events, 1)[-3:] == ["JOB_COMPLETED", "JOB_COMPLETED", "JOB_KILLED"]
    assert "FROM_JOB_MSG" not in kinds_at(events, 1)


def test_the_parts_of_a_sequence_follow_each_other_without_a_gap(batsim: EitherBatsim) -> None:
    """3000 thirds of a second; rounded to nanoseconds, they would be a microsecond shorter."""
    third = {"type": "parallel_homogeneous", "cpu": 1e9 / 3, "com": 0}

    batsim([{"profile": "seq"}], {"seq": {"type": "composed", "seq": ["third"], "repeat": 3000}, "third": third})

    assert batsim.rows[0]["finish_time"] == "1000.000000"


def test_a_job_that_runs_the_profile_selected_by_a_message_cannot_be_killed(batsim: EitherBatsim) -> None:
    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "REQUESTED_CALL":
            return [("KILL_JOB", {"job_ids": ["w0!0"]})]
        return and_call(1)(kind, data)

    hear = {"type": "recv", "regex": ".*", "success": "delay", "failure": "delay", "timeout": "delay"}
    batsim([{"profile": "hear"}, {"profile": "delay", "subtime": 9}], {"hear": hear, "delay": DELAY}, react=react)

    assert "Leaves should not contain sub tasks" in batsim.failure


def test_an_additional_io_job_may_be_an_existing_profile_and_runs_part_by_part(batsim: EitherBatsim) -> None:
    """Tasks of 5 s and 2 s, and beside them 1 s and 4 s on the same machine: 6 s each."""
    profiles = {
        "own": {"type": "composed", "seq": ["five", "two"]},
        "io": {"type": "composed", "seq": ["one", "four"]},
        **{
            name: {"type": "parallel", "cpu": [seconds * 1e9], "com": [0]}
            for name, seconds in (("one", 1), ("two", 2), ("four", 4), ("five", 5))
        },
    }

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        (decision,) = on_first_machines(kind, data) or [None]
        if decision is None or data["job_id"] != "w0!0":
            return [] if decision is None else [decision]
        return [("EXECUTE_JOB", {**decision[1], "additional_io_job": {"alloc": "0", "profile_name": "io"}})]

    batsim([{"profile": "own"}, {"profile": "io", "subtime": 20}], profiles, react=react)

    assert [row["execution_time"] for row in batsim.rows] == ["12.000000", "5.000000"]
