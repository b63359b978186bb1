"""Our Batsim against recordings of the real one: the same scheduler, the same messages, the same files."""

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

#: Runs whose messages and files are the same, on platforms with a network as well: there Batsim's own messages take
#: time, and take the same here.
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
#: Runs that Batsim aborts, and with which words; here they fail with the same. Batsim's files are empty then, ours are
#: not.
REFUSED = {
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
#: Runs without an end: Batsim says so in its log and exits with 0, and so does our command.
ABANDONED = {"err_NeverSchedule": "left 6 jobs that it was told of neither started nor rejected"}
#: Runs that are not repeated, and why.
NOT_REPEATED = {
    "redis": "--enable-redis",
    "up_smpi_collectives": "smpi",
    "up_smpi_compute_only": "smpi",
    "up_smpi_compute_only_2_jobs": "smpi",
    "up_smpi_mixed_comp_comm": "smpi",
    "up_walltime_smpi": "smpi",
}


def played(
    shared_data: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Recording, list[str]]:
    """Run our Batsim as Batsim was run; return the recording and what our scheduler was told."""
    recording = Recording(shared_data, name)
    monkeypatch.chdir(recording.folder / "inputs")
    arguments = dataclasses.replace(arguments_of(recording.arguments), prefix=str(tmp_path / "out"))
    scheduler = recording.scheduler() if arguments.has_scheduler else None
    try:
        run_batsim(arguments, scheduler=scheduler)
    except RunFailed as error:
        (tmp_path / "failure").write_text(str(error))
    return recording, [] if scheduler is None else scheduler.heard


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
    recording, heard = played(shared_data, name, tmp_path, monkeypatch)

    assert_same_messages(heard, recording.messages)
    assert_same_files(recording, tmp_path)
    assert not (tmp_path / "failure").exists()


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_batsim_abort_is_refused_with_its_words_and_nothing_is_lost(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, heard = played(shared_data, name, tmp_path, monkeypatch)

    assert_same_messages(heard, recording.messages)
    assert REFUSED[name] in (tmp_path / "failure").read_text()
    for table in ("jobs", "schedule", "machine_states"):
        assert read_table(tmp_path / f"out_{table}.csv")[0]


@pytest.mark.parametrize("name", ABANDONED)
def test_a_scheduler_that_leaves_jobs_behind_is_told_of_and_the_files_are_batsims(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, heard = played(shared_data, name, tmp_path, monkeypatch)

    assert_same_messages(heard, recording.messages)
    assert_same_files(recording, tmp_path)
    assert ABANDONED[name] in (tmp_path / "failure").read_text()


@pytest.mark.parametrize("name", NOT_REPEATED)
def test_what_is_not_supported_is_refused_by_name(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        played(shared_data, name, tmp_path, monkeypatch)
        problem = (tmp_path / "failure").read_text()
    except InputError as error:
        problem = str(error)

    assert NOT_REPEATED[name] in problem.lower()


def test_the_execution_context_is_shown_as_batsim_shows_it(shared_data: Path) -> None:
    recording = Recording(shared_data, "dump_context")

    shown = CliRunner().invoke(build_app("batsim"), ["batsim", *recording.arguments])

    assert json.loads(shown.output) == {
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

    assert {*AGREE, *REFUSED, *ABANDONED, *NOT_REPEATED, "dump_context"} == runs
