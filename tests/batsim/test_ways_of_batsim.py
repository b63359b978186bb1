"""What the real Batsim does in small cases where one would guess otherwise; ours does it too.

Each case has its figures, and runs on both where a `batsim` is on the PATH.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.real_batsim import LOG, real_batsim, run_real_batsim
from tests.batsim.recordings import arguments_of, read_table
from tests.batsim.test_our_batsim import Decision, Scheduler, on_first_machines

from batkube.batsim.simulator.run import run_batsim
from batkube.kernel.errors import RunFailed

OURS, REAL = "batkube batsim", "the batsim on the PATH"
WATTS = '<prop id="wattage_per_state" value="30:30:100"/>'
TASK = {"type": "parallel_homogeneous", "cpu": 5e9, "com": 0}
DELAY = {"type": "delay", "delay": 3}


class Play:
    """One simulation, by either Batsim."""

    def __init__(self, folder: Path, batsim: str) -> None:
        self._folder = folder
        self._batsim = batsim
        self.platform = silent_platform(folder, 4)
        #: What was refused, in Batsim's words or ours; empty if nothing was.
        self.failure = ""

    def __call__(
        self,
        jobs: Sequence[Mapping[str, Any]],
        profiles: Mapping[str, Mapping[str, Any]],
        *options: str,
        react: Callable[[str, Mapping[str, Any]], Sequence[Decision]] = on_first_machines,
    ) -> list[tuple[float, str, Mapping[str, Any]]]:
        """Simulate, and return the events that the scheduler heard."""
        entries = [{"id": str(number), "subtime": 0, "res": 1, **job} for number, job in enumerate(jobs)]
        workload = self._folder / "w.json"
        workload.write_text(json.dumps({"nb_res": 4, "jobs": entries, "profiles": profiles}))
        words = ["-p", str(self.platform), "-w", str(workload), *options]
        scheduler = Scheduler(react)
        if self._batsim == REAL:
            if run_real_batsim(words, self._folder, scheduler):
                self.failure = (self._folder / LOG).read_text()
        else:
            try:
                arguments = dataclasses.replace(arguments_of(words), prefix=str(self._folder / "out"))
                run_batsim(arguments, scheduler=scheduler)
            except RunFailed as error:
                self.failure = str(error)
        return scheduler.events

    @property
    def joules(self) -> str:
        """What all machines used, as the file of the whole says."""
        header, row = read_table(self._folder / "out_schedule.csv")
        return row[header.index("consumed_joules")]

    @property
    def rows(self) -> list[dict[str, str]]:
        """The jobs that ended."""
        header, *cells = read_table(self._folder / "out_jobs.csv")
        return [dict(zip(header, row, strict=True)) for row in cells]


@pytest.fixture(params=[OURS, REAL])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """A Batsim: ours, and the real one if there is one."""
    if request.param == REAL:
        real_batsim()
    return Play(tmp_path, request.param)


def and_call(at: float) -> Callable[[str, Mapping[str, Any]], list[Decision]]:
    """Start jobs on the first machines, and ask to be called at a date after each."""

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        started = on_first_machines(kind, data)
        return [*started, ("CALL_ME_LATER", {"timestamp": at})] if started else []

    return react


def kinds_at(events: Sequence[tuple[float, str, Mapping[str, Any]]], date: float) -> list[str]:
    return [kind for at, kind, _ in events if at == date and kind != "SIMULATION_ENDS"]


def test_a_task_that_began_before_a_call_was_asked_for_ends_before_it(play: Play) -> None:
    events = play([{"profile": "task"}], {"task": TASK}, react=and_call(5))

    assert kinds_at(events, 5) == ["JOB_COMPLETED", "REQUESTED_CALL"]


def test_where_energy_is_counted_meters_are_read_first(play: Play) -> None:
    play.platform = silent_platform(play.platform.parent, 4, inside=WATTS)

    events = play([{"profile": "task"}], {"task": TASK}, "-E", react=and_call(5))

    assert kinds_at(events, 5) == ["REQUESTED_CALL", "JOB_COMPLETED"]


@pytest.mark.parametrize(
    ("profile", "state"), [(TASK, "COMPLETED_SUCCESSFULLY"), (DELAY, "COMPLETED_WALLTIME_REACHED")]
)
def test_a_walltime_as_long_as_the_job_is_reached_by_delays_and_not_by_tasks(
    profile: Mapping[str, Any], state: str, play: Play
) -> None:
    play([{"profile": "p", "walltime": 5 if profile is TASK else 3}], {"p": profile})

    assert play.rows[0]["final_state"] == state


def test_a_pause_within_a_job_counts_as_work_where_nobody_reads_the_meter(play: Play) -> None:
    """The delay is slept on the first host, whose meter is read at its end: 5 s of 100 W, 3 s of 30 W, 5 s of 100 W.

    That of the second is read when the second task ends, and takes its power for the delay as well: 13 s of 100 W.
    """
    play.platform = silent_platform(play.platform.parent, 4, inside=WATTS)
    sequence = {"type": "composed", "seq": ["task", "delay", "task"]}

    play([{"res": 2, "profile": "seq"}], {"seq": sequence, "task": TASK, "delay": DELAY}, "-E")

    assert play.rows[0]["consumed_energy"] == "2390.000000"


def kill_at_once(kind: str, data: Mapping[str, Any]) -> list[Decision]:
    started = on_first_machines(kind, data)
    return [*started, ("KILL_JOB", {"job_ids": [data["job_id"]]})] if started else []


def test_a_job_that_is_killed_before_its_message_is_taken_has_said_nothing(play: Play) -> None:
    events = play([{"profile": "say"}], {"say": {"type": "send", "msg": {"a": 1}}}, react=kill_at_once)

    assert [kind for _, kind, _ in events if "JOB" in kind] == ["JOB_SUBMITTED", "JOB_COMPLETED", "JOB_KILLED"]


def test_so_has_one_that_is_killed_after_another_since_a_message_needs_a_mailbox_first(play: Play) -> None:
    """The killer stops the first job in one round and the second in the next, in which its message would be taken."""

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if data.get("job_id") != "w0!1" or kind != "JOB_SUBMITTED":
            return on_first_machines(kind, data)
        kill: Decision = ("KILL_JOB", {"job_ids": ["w0!0", "w0!1"]})
        return [("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "1"}), kill]

    say = {"type": "send", "msg": {"a": 1}}
    events = play([{"profile": "delay"}, {"profile": "say", "subtime": 1}], {"delay": DELAY, "say": say}, react=react)

    assert kinds_at(events, 1)[-3:] == ["JOB_COMPLETED", "JOB_COMPLETED", "JOB_KILLED"]
    assert "FROM_JOB_MSG" not in kinds_at(events, 1)


def test_a_call_that_comes_after_the_end_of_the_world_may_be_asked_for(play: Play) -> None:
    """batsched's `energy_bf` asks so where a job has no walltime; ours comes after 292 years."""
    events = play([{"profile": "delay"}], {"delay": DELAY}, react=and_call(1e19))

    assert play.failure == ""
    assert [kind for at, kind, _ in events if at > 9e9] == ["REQUESTED_CALL", "SIMULATION_ENDS"]
    assert play.rows[0]["finish_time"] == "3.000000"


def test_the_parts_of_a_sequence_follow_each_other_without_a_gap(play: Play) -> None:
    """3000 thirds of a second; whole nanoseconds each would be a microsecond less."""
    third = {"type": "parallel_homogeneous", "cpu": 1e9 / 3, "com": 0}

    play([{"profile": "seq"}], {"seq": {"type": "composed", "seq": ["third"], "repeat": 3000}, "third": third})

    assert play.rows[0]["finish_time"] == "1000.000000"


def test_a_job_that_goes_on_with_what_it_heard_cannot_be_killed(play: Play) -> None:
    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "REQUESTED_CALL":
            return [("KILL_JOB", {"job_ids": ["w0!0"]})]
        return and_call(1)(kind, data)

    hear = {"type": "recv", "regex": ".*", "success": "delay", "failure": "delay", "timeout": "delay"}
    play([{"profile": "hear"}, {"profile": "delay", "subtime": 9}], {"hear": hear, "delay": DELAY}, react=react)

    assert "Leaves should not contain sub tasks" in play.failure


def test_machines_are_not_shared_where_storages_are_not(play: Play) -> None:
    """A machine that computes has all the permissions of a storage."""
    options = ["--enable-compute-sharing", "--disable-storage-sharing"]

    play([{"profile": "delay"}] * 2, {"delay": DELAY}, *options)

    assert "time-sharing on storage machines is disabled" in play.failure


def test_all_traces_of_a_job_have_as_many_processes_as_its_first(play: Play, tmp_path: Path) -> None:
    for name, ranks in (("one", 1), ("two", 2)):
        files = [f"{name}.{rank}" for rank in range(ranks)]
        for rank, file in enumerate(files):
            (tmp_path / file).write_text(f"{rank} m_usage 1 1e9\n")
        (tmp_path / name).write_text("".join(f"{file}\n" for file in files))
    traces = {name: {"type": "usage_trace", "trace": name} for name in ("one", "two")}

    play([{"res": 2, "profile": "seq"}], {**traces, "seq": {"type": "composed", "seq": ["one", "two"]}})

    assert "it should use 2 MPI ranks but the ranking states that there are 1 ranks" in play.failure


def test_the_processes_of_a_trace_are_where_the_job_says(play: Play, tmp_path: Path) -> None:
    """Both on the second host, which has one core: 2 s instead of 1 s."""
    for rank in range(2):
        (tmp_path / f"{rank}.txt").write_text(f"{rank} m_usage 1 1e9\n")
    (tmp_path / "trace").write_text("0.txt\n1.txt\n")
    job = {"res": 2, "profile": "t", "smpi_ranks_to_hosts_mapping": [1, 1]}

    play([job], {"t": {"type": "usage_trace", "trace": "trace"}})

    assert play.rows[0]["execution_time"] == "2.000000"


def test_what_runs_beside_a_job_may_be_a_profile_of_its_workload_and_has_the_parts_of_a_sequence(play: Play) -> None:
    """Tasks of 5 s and 2 s, beside them 1 s and 4 s on the same machine: 6 s each."""
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

    play([{"profile": "own"}, {"profile": "io", "subtime": 20}], profiles, react=react)

    assert [row["execution_time"] for row in play.rows] == ["12.000000", "5.000000"]


def test_storage_may_be_called_host(play: Play) -> None:
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
    play.platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<zone id="z" routing="Full">{hosts}{link}{routes}</zone></platform>'
    )
    profile = {"type": "parallel_homogeneous_pfs", "bytes_to_write": 1e8, "bytes_to_read": 0, "host": "there"}

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        return [(what, {**how, "storage_mapping": {"there": 2}}) for what, how in on_first_machines(kind, data)]

    play([{"profile": "write"}], {"write": profile}, react=react)

    assert float(play.rows[0]["execution_time"]) == pytest.approx(0.8, abs=1e-6)


def test_what_a_message_brings_about_is_later_than_its_date_where_messages_take_any_time(play: Play) -> None:
    """Batsim's messages to itself take 0.1 ns: a job of 5 s starts that much after 0, and ends after a call for 5."""
    play.platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<zone id="z" routing="Full"><host id="master_host" speed="1Gf"/><host id="n" speed="1Gf"/>'
        '<link id="l" bandwidth="1GBps" latency="1ms"/>'
        '<route src="master_host" dst="n"><link_ctn id="l"/></route></zone></platform>'
    )

    events = play([{"profile": "task"}], {"task": TASK}, react=and_call(5))

    assert [(round(at, 3), kind) for at, kind, _ in events if 5 <= at < 6 and kind != "SIMULATION_ENDS"] == [
        (5.0, "REQUESTED_CALL"),
        (5.001, "JOB_COMPLETED"),
    ]


def test_nothing_happens_at_the_walltime_of_a_job_that_has_ended(play: Play) -> None:
    """Nobody reads the meter of machine 1 in the pause of job 1, at the walltime of job 0 (13 s) no more than else.

    So its pause costs as much as the task after it: 5 s + 8 s of 100 W there, and 5 s, 3 s of 30 W, 5 s on machine 0.
    """
    play.platform = silent_platform(play.platform.parent, 4, inside=WATTS)
    sequence = {"type": "composed", "seq": ["task", "delay", "task"]}
    jobs = [{"profile": "task", "walltime": 13}, {"res": 2, "profile": "seq", "subtime": 6}]

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        machines = {"w0!0": "1", "w0!1": "0-1"}
        return [("EXECUTE_JOB", {"job_id": data["job_id"], "alloc": machines[data["job_id"]]})] if "job" in data else []

    play(jobs, {"seq": sequence, "task": TASK, "delay": DELAY}, "-E", react=react)

    assert play.rows[1]["consumed_energy"] == "2390.000000"


def test_energy_is_a_joule_more_where_no_file_submits_a_job(play: Play) -> None:
    """Four machines of 30 W for 3 s: 360 J, from which Batsim takes what was read at the first submission, or -1."""
    play.platform = silent_platform(play.platform.parent, 4, inside=WATTS)
    job = {"id": "0", "subtime": 0, "res": 1, "profile": "p"}
    decisions: list[Decision] = [
        ("REGISTER_PROFILE", {"workload_name": "dyn", "profile_name": "p", "profile": DELAY}),
        ("REGISTER_JOB", {"job_id": "dyn!0", "job": job}),
        ("EXECUTE_JOB", {"job_id": "dyn!0", "alloc": "1"}),
        ("NOTIFY", {"type": "registration_finished"}),
    ]

    play([], {}, "--enable-dynamic-jobs", "-E", react=lambda kind, _: decisions if kind == "SIMULATION_BEGINS" else [])

    assert play.joules == "361.000000"


def test_energy_is_a_joule_less_than_nothing_where_no_job_ends(play: Play) -> None:
    """What was read at the last end is -1 as well."""
    play.platform = silent_platform(play.platform.parent, 4, inside=WATTS)

    play(
        [{"profile": "delay"}],
        {"delay": DELAY},
        "-E",
        react=lambda kind, data: [("REJECT_JOB", {"job_id": data["job_id"]})] if kind == "JOB_SUBMITTED" else [],
    )

    assert play.joules == "-1.000000"
