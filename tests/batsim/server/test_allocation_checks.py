"""Allocations that are rejected, and some that only look invalid.

Cases of `batsim` are run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.batsim.simulator.simulations import (
    DELAY,
    TASK,
    EitherBatsim,
    Reaction,
)

ONE, PROFILES = [{"profile": "delay"}], {"delay": DELAY, "task": TASK}


def with_members(**data: object) -> Reaction:
    """Execute jobs with these members of EXECUTE_JOB."""
    return lambda kind, event: [("EXECUTE_JOB", {"job_id": event["job_id"], **data})] if kind == "JOB_SUBMITTED" else []


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


def test_compute_nodes_are_not_shared_if_storage_is_not(batsim: EitherBatsim) -> None:
    """A compute node has all permissions of a storage."""
    options = ["--enable-compute-sharing", "--disable-storage-sharing"]

    batsim([{"profile": "delay"}] * 2, {"delay": DELAY}, *options)

    assert "time-sharing on storage machines is disabled" in batsim.failure


@pytest.mark.parametrize(
    ("execution", "problem"),
    [
        ({"alloc": "0-1"}, "The job requires 1 machines but only 2 were given"),
        ({"alloc": "9"}, "Cannot get machine 9: it does not exist"),
        ({"alloc": "0-1", "mapping": {"0": "0", "1": "1"}}, "custom mapping size (2) does not match"),
    ],
    ids=["too many machines", "a machine that does not exist", "a mapping of another size"],
)
def test_the_machines_must_exist_and_be_as_many_as_requested(
    execution: Mapping[str, Any], problem: str, own_batsim: EitherBatsim
) -> None:
    own_batsim(ONE, PROFILES, react=with_members(**execution))

    assert problem in own_batsim.failure


def test_a_profile_with_total_amounts_runs_on_any_number_of_machines(own_batsim: EitherBatsim) -> None:
    total = {"type": "parallel_homogeneous_total", "cpu": 6e9, "com": 0}

    own_batsim([{"profile": "total"}], {"total": total}, react=with_members(alloc="0-2"))

    assert own_batsim.rows[0]["execution_time"] == "2.000000"


def test_an_unavailable_machine_cannot_compute(own_batsim: EitherBatsim) -> None:
    events_file = own_batsim.platform.parent / "events.txt"
    events_file.write_text('{"timestamp": 0, "type": "machine_unavailable", "resources": "0"}\n')

    own_batsim([{"profile": "delay", "subtime": 1}], PROFILES, "--events", str(events_file))

    assert "cannot compute jobs now" in own_batsim.failure
