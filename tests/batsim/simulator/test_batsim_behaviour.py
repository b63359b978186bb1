"""Behaviour of Batsim in small cases that may surprise; our Batsim has it, too.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.simulator.simulations import DELAY, TASK, WATTS, Decision, EitherBatsim, on_first_machines


def and_call(at: float) -> Callable[[str, Mapping[str, Any]], list[Decision]]:
    """Execute jobs on the first machines, and request a call at a date after each."""

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        decisions = on_first_machines(kind, data)
        return [*decisions, ("CALL_ME_LATER", {"timestamp": at})] if decisions else []

    return react


def kinds_at(events: Sequence[tuple[float, str, Mapping[str, Any]]], date: float) -> list[str]:
    return [kind for at, kind, _ in events if at == date and kind != "SIMULATION_ENDS"]


def test_a_task_that_began_before_a_call_was_requested_ends_before_the_call(batsim: EitherBatsim) -> None:
    events = batsim([{"profile": "task"}], {"task": TASK}, react=and_call(5))

    assert kinds_at(events, 5) == ["JOB_COMPLETED", "REQUESTED_CALL"]


def test_with_energy_accounting_the_call_comes_before_the_end_of_the_task(batsim: EitherBatsim) -> None:
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)

    events = batsim([{"profile": "task"}], {"task": TASK}, "-E", react=and_call(5))

    assert kinds_at(events, 5) == ["REQUESTED_CALL", "JOB_COMPLETED"]


@pytest.mark.parametrize(
    ("profile", "state"), [(TASK, "COMPLETED_SUCCESSFULLY"), (DELAY, "COMPLETED_WALLTIME_REACHED")]
)
def test_a_walltime_as_long_as_the_job_is_reached_by_delays_and_not_by_tasks(
    profile: Mapping[str, Any], state: str, batsim: EitherBatsim
) -> None:
    batsim([{"profile": "p", "walltime": 5 if profile is TASK else 3}], {"p": profile})

    assert batsim.rows[0]["final_state"] == state


def test_a_delay_within_a_job_counts_as_work_on_hosts_whose_meter_is_not_updated(batsim: EitherBatsim) -> None:
    """The actor sleeps on the first host, whose meter is updated at the end: 5 s of 100 W, 3 s of 30 W, 5 s of 100 W.

    The meter of the second host is updated when the second task ends, at the power of that task: 13 s of 100 W.
    """
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)
    sequence = {"type": "composed", "seq": ["task", "delay", "task"]}

    batsim([{"res": 2, "profile": "seq"}], {"seq": sequence, "task": TASK, "delay": DELAY}, "-E")

    assert batsim.rows[0]["consumed_energy"] == "2390.000000"


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


def test_a_call_may_be_requested_for_a_date_beyond_the_longest_run(batsim: EitherBatsim) -> None:
    """batsched's `energy_bf` does so for jobs without a walltime; our call comes after 292 years."""
    events = batsim([{"profile": "delay"}], {"delay": DELAY}, react=and_call(1e19))

    assert batsim.failure == ""
    assert [kind for at, kind, _ in events if at > 9e9] == ["REQUESTED_CALL", "SIMULATION_ENDS"]
    assert batsim.rows[0]["finish_time"] == "3.000000"


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


def test_compute_nodes_are_not_shared_if_storage_is_not(batsim: EitherBatsim) -> None:
    """A compute node has all permissions of a storage."""
    options = ["--enable-compute-sharing", "--disable-storage-sharing"]

    batsim([{"profile": "delay"}] * 2, {"delay": DELAY}, *options)

    assert "time-sharing on storage machines is disabled" in batsim.failure


def test_all_traces_of_a_job_must_have_as_many_processes_as_the_first(batsim: EitherBatsim, tmp_path: Path) -> None:
    for name, ranks in (("one", 1), ("two", 2)):
        files = [f"{name}.{rank}" for rank in range(ranks)]
        for rank, file in enumerate(files):
            (tmp_path / file).write_text(f"{rank} m_usage 1 1e9\n")
        (tmp_path / name).write_text("".join(f"{file}\n" for file in files))
    traces = {name: {"type": "usage_trace", "trace": name} for name in ("one", "two")}

    batsim([{"res": 2, "profile": "seq"}], {**traces, "seq": {"type": "composed", "seq": ["one", "two"]}})

    assert "it should use 2 MPI ranks but the ranking states that there are 1 ranks" in batsim.failure


def test_the_processes_of_a_trace_run_on_the_hosts_of_the_jobs_mapping(batsim: EitherBatsim, tmp_path: Path) -> None:
    """Both run on the second host, which has one core: 2 s instead of 1 s."""
    for rank in range(2):
        (tmp_path / f"{rank}.txt").write_text(f"{rank} m_usage 1 1e9\n")
    (tmp_path / "trace").write_text("0.txt\n1.txt\n")
    job = {"res": 2, "profile": "t", "smpi_ranks_to_hosts_mapping": [1, 1]}

    batsim([job], {"t": {"type": "usage_trace", "trace": "trace"}})

    assert batsim.rows[0]["execution_time"] == "2.000000"


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


def test_the_storage_label_may_be_in_the_field_host(batsim: EitherBatsim) -> None:
    """100 MB over a link of 125 MB/s."""
    role = '<prop id="role" value="storage"/>'
    hosts = '<host id="master_host" speed="1Gf"/><host id="n" speed="1Gf"/>' + "".join(
        f'<host id="{name}" speed="0f">{role}</host>' for name in ("a", "b")
    )
    link = '<link id="l" bandwidth="125MBps" latency="0"/>'
    names = ("master_host", "n", "a", "b")
    routes = "".join(
        f'<route src="{source}" dst="{target}"><link_ctn id="l"/></route>'
        for place, source in enumerate(names)
        for target in names[place + 1 :]
    )
    batsim.platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<zone id="z" routing="Full">{hosts}{link}{routes}</zone></platform>'
    )
    profile = {"type": "parallel_homogeneous_pfs", "bytes_to_write": 1e8, "bytes_to_read": 0, "host": "there"}

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        return [(type_, {**body, "storage_mapping": {"there": 2}}) for type_, body in on_first_machines(kind, data)]

    batsim([{"profile": "write"}], {"write": profile}, react=react)

    assert float(batsim.rows[0]["execution_time"]) == pytest.approx(0.8, abs=1e-6)


def test_a_job_starts_slightly_after_its_message_if_messages_take_time(batsim: EitherBatsim) -> None:
    """Batsim's internal messages take 0.1 ns: a job of 5 s starts after 0, and ends after a call at 5 s."""
    batsim.platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<zone id="z" routing="Full"><host id="master_host" speed="1Gf"/><host id="n" speed="1Gf"/>'
        '<link id="l" bandwidth="1GBps" latency="1ms"/>'
        '<route src="master_host" dst="n"><link_ctn id="l"/></route></zone></platform>'
    )

    events = batsim([{"profile": "task"}], {"task": TASK}, react=and_call(5))

    assert [(round(at, 3), kind) for at, kind, _ in events if 5 <= at < 6 and kind != "SIMULATION_ENDS"] == [
        (5.0, "REQUESTED_CALL"),
        (5.001, "JOB_COMPLETED"),
    ]


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


def test_the_energy_is_one_joule_too_high_if_no_workload_file_submits_a_job(batsim: EitherBatsim) -> None:
    """Four machines of 30 W for 3 s use 360 J. Batsim subtracts the energy at the first submission, or -1."""
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)
    job = {"id": "0", "subtime": 0, "res": 1, "profile": "p"}
    decisions: list[Decision] = [
        ("REGISTER_PROFILE", {"workload_name": "dyn", "profile_name": "p", "profile": DELAY}),
        ("REGISTER_JOB", {"job_id": "dyn!0", "job": job}),
        ("EXECUTE_JOB", {"job_id": "dyn!0", "alloc": "1"}),
        ("NOTIFY", {"type": "registration_finished"}),
    ]

    batsim(
        [], {}, "--enable-dynamic-jobs", "-E", react=lambda kind, _: decisions if kind == "SIMULATION_BEGINS" else []
    )

    assert batsim.joules == "361.000000"


def test_the_energy_is_minus_one_joule_if_no_job_ends(batsim: EitherBatsim) -> None:
    """Without an end, the energy at the last end is -1."""
    batsim.platform = silent_platform(batsim.platform.parent, 4, inside=WATTS)

    batsim(
        [{"profile": "delay"}],
        {"delay": DELAY},
        "-E",
        react=lambda kind, data: [("REJECT_JOB", {"job_id": data["job_id"]})] if kind == "JOB_SUBMITTED" else [],
    )

    assert batsim.joules == "-1.000000"
