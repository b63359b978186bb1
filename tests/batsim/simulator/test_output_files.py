"""The energy of all machines in the file of the schedule.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from tests.batsim.platforms import silent_platform
from tests.batsim.simulator.simulations import (
    DELAY,
    WATTS,
    Decision,
    EitherBatsim,
)


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
