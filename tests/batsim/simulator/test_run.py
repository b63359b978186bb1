"""Runs of our Batsim: usage traces, runs without a scheduler, unfinished jobs, energy."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.batsim.platforms import silent_platform
from tests.batsim.recordings import arguments_of, read_table
from tests.batsim.simulator.simulations import WATTS, Decision, ReactiveScheduler, job_rows, on_first_machines
from typer.testing import CliRunner

from batkube.batsim.simulator.run import SimulatorArguments, run_batsim
from batkube.batsim.state.options import Options
from batkube.cli.app import build_app
from batkube.kernel.errors import InputError, RunFailed


def write_inputs(folder: Path, jobs: Sequence[Mapping[str, Any]], **profiles: Mapping[str, Any]) -> SimulatorArguments:
    """Write the inputs of a simulation on four hosts of ten cores with 100 Mflop/s each; return its arguments."""
    platform = silent_platform(folder, 4, more='speed="100Mf" core="10"')
    entries = [{"id": str(number), "subtime": 0, "res": 1, **job} for number, job in enumerate(jobs)]
    (folder / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": entries, "profiles": profiles}))
    return SimulatorArguments(platform, [folder / "w.json"], prefix=str(folder / "out"))


@pytest.fixture
def trace(tmp_path: Path) -> Mapping[str, Any]:
    """Two processes: the first uses half of its host for 10 s, then all of it for 5 s; the second is shorter."""
    folder = tmp_path / "trace"
    folder.mkdir()
    (folder / "all.txt").write_text("0.txt\n1.txt\n")
    (folder / "0.txt").write_text("0 m_usage 0.5 1000e6\n0 m_usage 1 500e6\n")
    (folder / "1.txt").write_text("1 m_usage 0.1 200e6\n")
    return {"type": "usage_trace", "trace": "trace/all.txt"}


def test_a_usage_trace_takes_as_long_as_its_longest_process(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    run_batsim(
        write_inputs(tmp_path, [{"res": 2, "profile": "t"}], t=trace), scheduler=ReactiveScheduler(on_first_machines)
    )

    (row,) = job_rows(tmp_path)
    assert (row["execution_time"], row["final_state"]) == ("15.000000", "COMPLETED_SUCCESSFULLY")


def test_processes_on_one_host_share_it(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    """Both processes of a trace fit on one host of ten cores: at first, they use five cores and one core.

    Two jobs at once use ten cores in the first step, which the host has, and twenty in the second, which takes 10 s.
    """
    alone = write_inputs(tmp_path, [{"res": 1, "profile": "t"}], t=trace)
    run_batsim(alone, scheduler=ReactiveScheduler(on_first_machines))
    assert job_rows(tmp_path)[0]["execution_time"] == "15.000000"

    two = write_inputs(tmp_path, [{"res": 1, "profile": "u"}] * 2, u={**trace, "trace": "trace/one.txt"})
    (tmp_path / "trace" / "one.txt").write_text("0.txt\n")
    run_batsim(_with_sharing(two), scheduler=ReactiveScheduler(on_first_machines))
    assert [row["execution_time"] for row in job_rows(tmp_path)] == ["20.000000"] * 2


def _with_sharing(arguments: SimulatorArguments) -> SimulatorArguments:
    return dataclasses.replace(arguments, options=dataclasses.replace(arguments.options, allows_compute_sharing=True))


def test_a_usage_trace_ends_at_its_walltime_and_frees_its_host(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    next_job = {"subtime": 12, "profile": "compute"}
    arguments = write_inputs(
        tmp_path,
        [{"res": 2, "profile": "t", "walltime": 12}, next_job],
        t=trace,
        compute={"type": "parallel_homogeneous", "cpu": 100e6, "com": 0},
    )

    run_batsim(arguments, scheduler=ReactiveScheduler(on_first_machines))

    first, second = job_rows(tmp_path)
    assert (first["execution_time"], first["final_state"]) == ("12.000000", "COMPLETED_WALLTIME_REACHED")
    assert (second["starting_time"], second["execution_time"]) == ("12.000000", "1.000000")


def test_a_killed_usage_trace_frees_its_host(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "REQUESTED_CALL":
            return [("KILL_JOB", {"job_ids": ["w0!0"]})]
        call = [("CALL_ME_LATER", {"timestamp": 7})] if kind == "SIMULATION_BEGINS" else []
        return [*call, *on_first_machines(kind, data)]

    compute = {"type": "parallel_homogeneous", "cpu": 100e6, "com": 0}
    jobs = [{"res": 2, "profile": "t"}, {"subtime": 8, "profile": "compute"}]
    scheduler = ReactiveScheduler(react)
    run_batsim(write_inputs(tmp_path, jobs, t=trace, compute=compute), scheduler=scheduler)

    first, second = job_rows(tmp_path)
    assert (first["finish_time"], first["final_state"]) == ("7.000000", "COMPLETED_KILLED")
    assert second["execution_time"] == "1.000000"
    assert [kind for at, kind, _ in scheduler.events if at == 7] == ["REQUESTED_CALL", "JOB_COMPLETED", "JOB_KILLED"]


def test_a_missing_trace_is_an_input_error_before_anything_is_written(tmp_path: Path) -> None:
    arguments = write_inputs(tmp_path, [{"profile": "t"}], t={"type": "usage_trace", "trace": "no/such.txt"})

    with pytest.raises(InputError, match=r"no/such\.txt"):
        run_batsim(arguments, scheduler=ReactiveScheduler(on_first_machines))
    assert not list(tmp_path.glob("out_*"))


# Without a scheduler


def batsim(arguments: SimulatorArguments, *options: str) -> tuple[int, str]:
    """Run the command; return its exit code and output."""
    words = ["batsim", "-p", str(arguments.platform), "-w", str(arguments.workloads[0]), "-e", arguments.prefix]
    result = CliRunner().invoke(build_app("batsim"), [*words, *options], catch_exceptions=False)
    return result.exit_code, result.output


def test_without_a_scheduler_all_jobs_start_at_once_on_the_first_machines(tmp_path: Path) -> None:
    """The submission times are ignored: a task of 3 s, and a delay of 8 s on three machines."""
    compute = {"type": "parallel_homogeneous", "cpu": 300e6, "com": 0}
    jobs = [{"profile": "compute", "subtime": 50}, {"profile": "wait", "res": 3, "subtime": 70}]
    arguments = write_inputs(tmp_path, jobs, compute=compute, wait={"type": "delay", "delay": 8})

    assert batsim(arguments, "--no-sched")[0] == 0

    _, *states = read_table(tmp_path / "out_machine_states.csv")
    assert states == [
        ["0", "0", "0", "0", "3", "1"],
        ["0", "0", "0", "0", "1", "3"],
        ["3", "0", "0", "0", "1", "3"],
        ["8", "0", "0", "0", "4", "0"],
    ]
    assert job_rows(tmp_path) == []


def test_without_a_scheduler_energy_is_accounted_as_with_one(tmp_path: Path) -> None:
    """Two machines of 30 W, one of which computes at 100 W: 130 W for 5 s."""
    platform = silent_platform(tmp_path, 2, inside=WATTS)
    jobs = [{"id": "1", "subtime": 0, "res": 1, "profile": "c"}]
    profiles = {"c": {"type": "parallel_homogeneous", "cpu": 5e9, "com": 0}}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    files = ["-p", str(platform), "-w", str(tmp_path / "w.json"), "-e", str(tmp_path / "o")]

    result = CliRunner().invoke(build_app("batsim"), ["batsim", *files, "--no-sched", "-E", "-q"])

    assert result.exit_code == 0
    assert read_table(tmp_path / "o_consumed_energy.csv")[-1][:2] == ["5.000000", "650.000000"]


@pytest.mark.parametrize(
    ("job", "options", "problem"),
    [
        ({"profile": "wait", "res": 5}, [], "requests 5 of 4 machines"),
        ({"profile": "talk"}, [], "exchanges messages with a scheduler"),
        ({"profile": "wait"}, ["--events", "events.txt"], "requires a scheduler"),
    ],
)
def test_inputs_that_need_a_scheduler_are_rejected_with_no_sched(
    tmp_path: Path, job: Mapping[str, Any], options: list[str], problem: str
) -> None:
    talk = {"type": "composed", "repeat": 1, "seq": ["hear"]}
    hear = {"type": "recv", "regex": ".*", "success": "wait", "failure": "wait", "timeout": "wait"}
    arguments = write_inputs(tmp_path, [job], wait={"type": "delay", "delay": 8}, talk=talk, hear=hear)

    with pytest.raises(InputError, match=f"{problem}(.|\n)*omit --no-sched"):
        batsim(arguments, "--no-sched", *options)


def test_unfinished_jobs_are_reported_and_the_exit_code_is_that_of_batsim(tmp_path: Path) -> None:
    context = zmq.Context()
    socket = context.socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    arguments = write_inputs(tmp_path, [{"profile": "wait"}] * 3, wait={"type": "delay", "delay": 8})

    def answer() -> None:
        idle = ReactiveScheduler(lambda kind, data: [])
        while socket.poll(2000):
            socket.send(idle.request(socket.recv().decode()))

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        code, output = batsim(arguments, "-q", "-s", f"tcp://127.0.0.1:{port}")
    finally:
        thread.join()
        socket.close()
        context.term()

    assert code == 0
    assert "warning: no more events at 0 s: the scheduler neither executed nor rejected 3 submitted jobs" in output


def test_the_energy_of_an_aborted_simulation_without_ended_jobs_is_negative(tmp_path: Path) -> None:
    """It is the energy at the last end of a job, or -1, minus that at the first submission (9 s of 4 x 30 W)."""
    jobs = [{"profile": "wait", "subtime": 9}]

    def reject_unknown_job(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        return [("REJECT_JOB", {"job_id": "w0!none"})] if kind == "JOB_SUBMITTED" else []

    arguments = dataclasses.replace(
        write_inputs(tmp_path, jobs, wait={"type": "delay", "delay": 8}),
        platform=silent_platform(tmp_path, 4, inside=WATTS),
        options=Options(has_energy=True),
    )

    with pytest.raises(RunFailed, match="does not exist"):
        run_batsim(arguments, scheduler=ReactiveScheduler(reject_unknown_job))

    header, row = read_table(tmp_path / "out_schedule.csv")
    assert row[header.index("consumed_joules")] == "-1081.000000"


@pytest.mark.parametrize(("text", "limit"), [("0", None), ("-3", None), ("7", 7)])
def test_a_limit_of_machines_that_is_not_positive_is_ignored(text: str, limit: int | None) -> None:
    """As in Batsim."""
    assert arguments_of(["-p", "p.xml", "--mmax", text]).machines_max == limit
