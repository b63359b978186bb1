"""Our Batsim repeats recorded runs of the real one: the same scheduler, messages and output files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tests.batsim.recordings import Recording, arguments_of, comparable, differences, read_table
from typer.testing import CliRunner

from batkube.batsim.simulator.run import run_batsim
from batkube.cli.app import build_app
from batkube.kernel.errors import InputError, RunFailed

#: Runs with the same messages and files, also on platforms with a network, where Batsim's internal messages take time.
AGREE = (
    "additional_io",
    "burst200",
    "call_me_later",
    "dynamic_ack",
    "dynamic_noack",
    "energy_fcfs",
    "energy_pstate",
    "err_BadNowPast",
    "external_events",
    "forwarded",
    "job_messages",
    "kill",
    "kill_early",
    "mapping",
    "no_sched",
    "profiles_serial",
    "pybatsim_fcfs_burst200_net",
    "reject",
    "same_time",
    "sharing",
    "spaced200",
    "spaced200_net",
    "storage",
    "up_energy_load0",
    "up_energy_load100",
    "up_one_computation_job",
    "up_one_delay_job",
    "up_sequence_delay",
    "up_usage_trace",
    "walltime_nonet",
)
#: Runs on which Batsim aborts, and its message, which is also ours. Batsim's files are empty then, ours are not.
ABORTED = {
    "change_state": "Job 1 did not complete",
    "err_BadAllocSize": "The job requires 1 machines but only 3 were given",
    "err_BadContinue": "a registration_finished message have already been received",
    "err_BadNoSubtime": "job 'dyn!0' has no 'subtime' field",
    "err_BadPast": "You asked to be awaken in the past! (you ask: 0.000000, it is: 0.000000)",
    "err_BadType": "event 0 has an unknown 'type' value 'NO_SUCH_EVENT'",
    "err_BadUnknownJob": "Cannot get job 'w0!nonexistent': it does not exist",
    "err_ChangeStateReject": "Job 0 did not complete",
    "err_KillSubmitted": "refers to a job not being executed nor completed",
}
#: Runs with unfinished jobs: Batsim logs that and exits with 0, and so does our command.
UNFINISHED = {"err_NeverSchedule": "neither executed nor rejected 6 submitted jobs"}
#: Runs with an unsupported feature, and its name in our error.
UNSUPPORTED = {
    "redis": "--enable-redis",
    "up_smpi_collectives": "smpi",
    "up_smpi_compute_only": "smpi",
    "up_smpi_compute_only_2_jobs": "smpi",
    "up_smpi_mixed_comp_comm": "smpi",
    "up_walltime_smpi": "smpi",
}


def simulate(
    shared_data: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Recording, list[str]]:
    """Repeat a recorded run; return the recording and the messages that our scheduler received."""
    recording = Recording(shared_data, name)
    monkeypatch.chdir(recording.folder / "inputs")
    arguments = dataclasses.replace(arguments_of(recording.arguments), prefix=str(tmp_path / "out"))
    scheduler = recording.scheduler() if arguments.has_scheduler else None
    try:
        run_batsim(arguments, scheduler=scheduler)
    except RunFailed as error:
        (tmp_path / "failure").write_text(str(error))
    return recording, [] if scheduler is None else scheduler.messages


def assert_same_messages(ours: list[str], theirs: list[str]) -> None:
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        assert comparable(mine) == comparable(other), f"message {number}"
    assert len(ours) == len(theirs)


def assert_same_files(recording: Recording, folder: Path) -> None:
    for name in ("jobs", "schedule", "machine_states", "consumed_energy", "pstate_changes"):
        theirs = recording.table(name)
        path = folder / f"out_{name}.csv"
        assert path.exists() or not theirs
        assert list(differences(read_table(path), theirs) if theirs else ()) == [], name


@pytest.mark.parametrize("name", AGREE)
def test_messages_and_files_are_those_of_batsim(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, messages = simulate(shared_data, name, tmp_path, monkeypatch)

    assert_same_messages(messages, recording.messages)
    assert_same_files(recording, tmp_path)
    assert not (tmp_path / "failure").exists()


@pytest.mark.parametrize("name", ABORTED)
def test_requests_on_which_batsim_aborts_are_rejected_with_its_message_after_writing_the_files(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, messages = simulate(shared_data, name, tmp_path, monkeypatch)

    assert_same_messages(messages, recording.messages)
    assert ABORTED[name] in (tmp_path / "failure").read_text()
    for table in ("jobs", "schedule", "machine_states"):
        assert read_table(tmp_path / f"out_{table}.csv")[0]


@pytest.mark.parametrize("name", UNFINISHED)
def test_unfinished_jobs_are_reported_and_the_files_are_those_of_batsim(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, messages = simulate(shared_data, name, tmp_path, monkeypatch)

    assert_same_messages(messages, recording.messages)
    assert_same_files(recording, tmp_path)
    assert UNFINISHED[name] in (tmp_path / "failure").read_text()


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_features_are_rejected_by_name(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        simulate(shared_data, name, tmp_path, monkeypatch)
        problem = (tmp_path / "failure").read_text()
    except InputError as error:
        problem = str(error)

    assert UNSUPPORTED[name] in problem.lower()


def test_the_execution_context_is_that_of_batsim(shared_data: Path) -> None:
    recording = Recording(shared_data, "dump_context")

    result = CliRunner().invoke(build_app("batsim"), ["batsim", *recording.arguments])

    assert json.loads(result.output) == {
        "socket_endpoint": "tcp://localhost:28000",
        "redis_enabled": False,
        "redis_hostname": "127.0.0.1",
        "redis_port": 6379,
        "redis_prefix": "default",
        "export_prefix": "out",
        "external_scheduler": True,
    }


def test_every_recorded_run_is_in_one_of_the_tables(shared_data: Path) -> None:
    runs = {path.name for path in (shared_data / "batsim-runs" / "runs").iterdir()}

    assert {*AGREE, *ABORTED, *UNFINISHED, *UNSUPPORTED, "dump_context"} == runs
