"""Our Batsim with schedulers in the same process: usage traces, no scheduler at all, jobs left behind."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.batsim.platforms import silent_platform
from tests.batsim.recordings import arguments_of, read_table
from typer.testing import CliRunner

from batkube.batsim.simulator.run import SimulatorArguments, run_batsim
from batkube.batsim.state.options import Options
from batkube.cli.app import build_app
from batkube.kernel.errors import InputError, RunFailed

Decision = tuple[str, Mapping[str, Any]]


class Scheduler:
    """Answers each event by a function."""

    def __init__(self, reaction: Callable[[str, Mapping[str, Any]], Sequence[Decision]]) -> None:
        self._reaction = reaction
        self.events: list[tuple[float, str, Mapping[str, Any]]] = []

    def request(self, text: str) -> bytes:
        """Return the reply to a message."""
        message = json.loads(text)
        now, decisions = message["now"], []
        for event in message["events"]:
            self.events.append((event["timestamp"], event["type"], event["data"]))
            decisions += self._reaction(event["type"], event["data"])
        events = [{"timestamp": now, "type": kind, "data": data} for kind, data in decisions]
        return json.dumps({"now": now, "events": events}).encode()


def on_first_machines(kind: str, data: Mapping[str, Any]) -> list[Decision]:
    """Start each job on the first machines."""
    if kind != "JOB_SUBMITTED":
        return []
    return [("EXECUTE_JOB", {"job_id": data["job_id"], "alloc": f"0-{data['job']['res'] - 1}"})]


def written(folder: Path, jobs: Sequence[Mapping[str, Any]], **profiles: Mapping[str, Any]) -> SimulatorArguments:
    """Return the arguments of a simulation of jobs on four hosts of ten cores with 100 Mflop/s each."""
    platform = silent_platform(folder, 4, more='speed="100Mf" core="10"')
    entries = [{"id": str(number), "subtime": 0, "res": 1, **job} for number, job in enumerate(jobs)]
    (folder / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": entries, "profiles": profiles}))
    return SimulatorArguments(platform, [folder / "w.json"], prefix=str(folder / "out"))


@pytest.fixture
def trace(tmp_path: Path) -> Mapping[str, Any]:
    """Two processes: the first has half of its host busy for 10 s, then all of it for 5 s, the second waits not."""
    folder = tmp_path / "trace"
    folder.mkdir()
    (folder / "all.txt").write_text("0.txt\n1.txt\n")
    (folder / "0.txt").write_text("0 m_usage 0.5 1000e6\n0 m_usage 1 500e6\n")
    (folder / "1.txt").write_text("1 m_usage 0.1 200e6\n")
    return {"type": "usage_trace", "trace": "trace/all.txt"}


def rows(folder: Path) -> list[dict[str, str]]:
    header, *cells = read_table(folder / "out_jobs.csv")
    return [dict(zip(header, row, strict=True)) for row in cells]


def test_a_usage_trace_takes_as_long_as_its_longest_process(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    run_batsim(written(tmp_path, [{"res": 2, "profile": "t"}], t=trace), scheduler=Scheduler(on_first_machines))

    (row,) = rows(tmp_path)
    assert (row["execution_time"], row["final_state"]) == ("15.000000", "COMPLETED_SUCCESSFULLY")


def test_processes_on_one_host_share_it(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    """Goal: with both on one host of ten cores, five and one are busy at first, and nobody waits; later ten are.

    Two jobs at once ask for ten cores in their first steps, which are there, and for twenty in the second: 5 s + 5 s.
    """
    alone = written(tmp_path, [{"res": 1, "profile": "t"}], t=trace)
    run_batsim(alone, scheduler=Scheduler(on_first_machines))
    assert rows(tmp_path)[0]["execution_time"] == "15.000000"

    sharing = Scheduler(on_first_machines)
    two = written(tmp_path, [{"res": 1, "profile": "u"}] * 2, u={**trace, "trace": "trace/one.txt"})
    (tmp_path / "trace" / "one.txt").write_text("0.txt\n")
    run_batsim(_sharing(two), scheduler=sharing)
    assert [row["execution_time"] for row in rows(tmp_path)] == ["20.000000"] * 2


def _sharing(arguments: SimulatorArguments) -> SimulatorArguments:
    return dataclasses.replace(arguments, options=dataclasses.replace(arguments.options, allows_compute_sharing=True))


def test_a_usage_trace_ends_at_its_walltime_and_its_host_is_free(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    after = {"subtime": 12, "profile": "compute"}
    arguments = written(
        tmp_path,
        [{"res": 2, "profile": "t", "walltime": 12}, after],
        t=trace,
        compute={"type": "parallel_homogeneous", "cpu": 100e6, "com": 0},
    )

    run_batsim(arguments, scheduler=Scheduler(on_first_machines))

    first, second = rows(tmp_path)
    assert (first["execution_time"], first["final_state"]) == ("12.000000", "COMPLETED_WALLTIME_REACHED")
    assert (second["starting_time"], second["execution_time"]) == ("12.000000", "1.000000")


def test_a_usage_trace_that_is_killed_leaves_its_host(tmp_path: Path, trace: Mapping[str, Any]) -> None:
    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "REQUESTED_CALL":
            return [("KILL_JOB", {"job_ids": ["w0!0"]})]
        call = [("CALL_ME_LATER", {"timestamp": 7})] if kind == "SIMULATION_BEGINS" else []
        return [*call, *on_first_machines(kind, data)]

    compute = {"type": "parallel_homogeneous", "cpu": 100e6, "com": 0}
    jobs = [{"res": 2, "profile": "t"}, {"subtime": 8, "profile": "compute"}]
    scheduler = Scheduler(react)
    run_batsim(written(tmp_path, jobs, t=trace, compute=compute), scheduler=scheduler)

    first, second = rows(tmp_path)
    assert (first["finish_time"], first["final_state"]) == ("7.000000", "COMPLETED_KILLED")
    assert second["execution_time"] == "1.000000"
    assert [kind for at, kind, _ in scheduler.events if at == 7] == ["REQUESTED_CALL", "JOB_COMPLETED", "JOB_KILLED"]


def test_a_trace_that_is_not_there_is_an_input_error_before_anything_is_written(tmp_path: Path) -> None:
    arguments = written(tmp_path, [{"profile": "t"}], t={"type": "usage_trace", "trace": "no/such.txt"})

    with pytest.raises(InputError, match=r"no/such\.txt"):
        run_batsim(arguments, scheduler=Scheduler(on_first_machines))
    assert not list(tmp_path.glob("out_*"))


# Without a scheduler


def batsim(arguments: SimulatorArguments, *options: str) -> tuple[int, str]:
    """Run the command; return its exit code and what it said."""
    words = ["batsim", "-p", str(arguments.platform), "-w", str(arguments.workloads[0]), "-e", arguments.prefix]
    result = CliRunner().invoke(build_app("batsim"), [*words, *options], catch_exceptions=False)
    return result.exit_code, result.output


def test_without_a_scheduler_all_jobs_begin_at_once_on_the_first_machines(tmp_path: Path) -> None:
    """Two tasks of 10 cores' work on one host of 10 cores each take as long as alone; whenever they are submitted."""
    compute = {"type": "parallel_homogeneous", "cpu": 300e6, "com": 0}
    jobs = [{"profile": "compute", "subtime": 50}, {"profile": "wait", "res": 3, "subtime": 70}]
    arguments = written(tmp_path, jobs, compute=compute, wait={"type": "delay", "delay": 8})

    assert batsim(arguments, "--no-sched")[0] == 0

    _, *states = read_table(tmp_path / "out_machine_states.csv")
    assert states == [
        ["0", "0", "0", "0", "3", "1"],
        ["0", "0", "0", "0", "1", "3"],
        ["3", "0", "0", "0", "1", "3"],
        ["8", "0", "0", "0", "4", "0"],
    ]
    assert rows(tmp_path) == []


def test_without_a_scheduler_energy_is_counted_as_with_one(tmp_path: Path) -> None:
    """Two machines of 30 W, one of which computes at 100 W for 5 s: 60 W and 70 W more, for 5 s."""
    watts = '<prop id="wattage_per_state" value="30:30:100"/>'
    platform = silent_platform(tmp_path, 2, inside=watts)
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
        ({"profile": "wait", "res": 5}, [], "asks for 5 machines of 4"),
        ({"profile": "talk"}, [], "talks with a scheduler"),
        ({"profile": "wait"}, ["--events", "events.txt"], "requires a scheduler"),
    ],
)
def test_what_needs_a_scheduler_is_refused_without_one(
    tmp_path: Path, job: Mapping[str, Any], options: list[str], problem: str
) -> None:
    talk = {"type": "composed", "repeat": 1, "seq": ["hear"]}
    hear = {"type": "recv", "regex": ".*", "success": "wait", "failure": "wait", "timeout": "wait"}
    arguments = written(tmp_path, [job], wait={"type": "delay", "delay": 8}, talk=talk, hear=hear)

    with pytest.raises(InputError, match=f"{problem}(.|\n)*(omit|leave out) --no-sched"):
        batsim(arguments, "--no-sched", *options)


def test_jobs_that_are_left_behind_are_told_and_the_command_ends_as_batsim_does(tmp_path: Path) -> None:
    context = zmq.Context()
    socket = context.socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    arguments = written(tmp_path, [{"profile": "wait"}] * 3, wait={"type": "delay", "delay": 8})

    def answer() -> None:
        idle = Scheduler(lambda kind, data: [])
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
    assert "warning: nothing more is due at 0 s, and the scheduler left 3 jobs" in output


def test_a_simulation_that_breaks_off_before_any_job_has_ended_has_used_less_than_nothing(tmp_path: Path) -> None:
    """The schedule's energy is that from the first submission (9 s of 4 x 30 W) to the last end of a job, or -1."""
    watts = '<prop id="wattage_per_state" value="30:30:100"/>'
    late = [{"profile": "wait", "subtime": 9}]

    def reject_nobody(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        return [("REJECT_JOB", {"job_id": "w0!none"})] if kind == "JOB_SUBMITTED" else []

    arguments = dataclasses.replace(
        written(tmp_path, late, wait={"type": "delay", "delay": 8}),
        platform=silent_platform(tmp_path, 4, inside=watts),
        options=Options(has_energy=True),
    )

    with pytest.raises(RunFailed, match="does not exist"):
        run_batsim(arguments, scheduler=Scheduler(reject_nobody))

    header, row = read_table(tmp_path / "out_schedule.csv")
    assert row[header.index("consumed_joules")] == "-1081.000000"


@pytest.mark.parametrize(("text", "limit"), [("0", None), ("-3", None), ("7", 7)])
def test_a_limit_that_is_none_takes_all_machines(text: str, limit: int | None) -> None:
    """As with Batsim, where only numbers above 0 limit anything."""
    assert arguments_of(["-p", "p.xml", "--mmax", text]).machines_max == limit
