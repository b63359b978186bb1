"""Reading energy meters delays an actor, and so changes the order of events at one date.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.batsim.platforms import silent_platform
from tests.batsim.simulator.simulations import (
    DELAY,
    TASK,
    WATTS,
    Decision,
    EitherBatsim,
    and_call,
    kinds_at,
)


def test_with_energy_accounting_the_call_comes_before_the_end_of_the_task(batsim: EitherBatsim) -> None:
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)

    events = batsim([{"profile": "task"}], {"task": TASK}, "-E", react=and_call(5))

    assert kinds_at(events, 5) == ["REQUESTED_CALL", "JOB_COMPLETED"]


def test_a_delay_within_a_job_counts_as_work_on_hosts_whose_meter_is_not_updated(batsim: EitherBatsim) -> None:
    """The actor sleeps on the first host, whose meter is updated at the end: 5 s of 100 W, 3 s of 30 W, 5 s of 100 W.

    The meter of the second host is updated when the second task ends, at the power of that task: 13 s of 100 W.
    """
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)
    sequence = {"type": "composed", "seq": ["task", "delay", "task"]}

    batsim([{"res": 2, "profile": "seq"}], {"seq": sequence, "task": TASK, "delay": DELAY}, "-E")

    assert batsim.rows[0]["consumed_energy"] == "2390.000000"


def test_the_walltime_of_a_job_that_has_ended_has_no_effect(batsim: EitherBatsim) -> None:
    """The meter of machine 1 is not updated at the walltime of job 0 (13 s), which is in the delay of job 1.

    So the delay has the power of the task after it: 5 s + 8 s of 100 W there, and 5 s, 3 s of 30 W, 5 s on machine 0.
    """
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)
    sequence = {"type": "composed", "seq": ["task", "delay", "task"]}
    jobs = [{"profile": "task", "walltime": 13}, {"res": 2, "profile": "seq", "subtime": 6}]

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        machines = {"w0!0": "1", "w0!1": "0-1"}
        return [("EXECUTE_JOB", {"job_id": data["job_id"], "alloc": machines[data["job_id"]]})] if "job" in data else []

    batsim(jobs, {"seq": sequence, "task": TASK, "delay": DELAY}, "-E", react=react)

    assert batsim.rows[1]["consumed_energy"] == "2390.000000"
