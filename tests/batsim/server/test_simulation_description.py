"""The data of SIMULATION_BEGINS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.batsim.simulator.simulations import DELAY, TASK, EitherBatsim


def description(own_batsim: EitherBatsim, *options: str) -> Mapping[str, Any]:
    """Return the data that the scheduler receives first."""
    at, kind, data = own_batsim([{"profile": "delay"}], {"delay": DELAY, "unused": TASK}, *options)[0]
    assert (at, kind) == (0.0, "SIMULATION_BEGINS")
    return data


def test_machines_are_listed_by_role(own_batsim: EitherBatsim) -> None:
    data = description(own_batsim, "-r", "host3:storage")

    assert [machine["name"] for machine in data["compute_resources"]] == ["host0", "host1", "host2"]
    assert [machine["name"] for machine in data["storage_resources"]] == ["host3"]
    assert (data["nb_resources"], data["nb_compute_resources"], data["nb_storage_resources"]) == (4, 3, 1)
    assert {machine["state"] for machine in data["compute_resources"]} == {"idle"}


def test_profiles_that_no_job_uses_are_not_sent(own_batsim: EitherBatsim) -> None:
    profiles = description(own_batsim)["profiles"]["w0"]

    assert list(profiles) == ["delay"]
    assert profiles["delay"]["delay"] == 3


def test_options_are_part_of_the_description(own_batsim: EitherBatsim) -> None:
    data = description(own_batsim, "--enable-compute-sharing", "--disable-storage-sharing")

    assert (data["allow_compute_sharing"], data["allow_storage_sharing"]) == (True, False)
    assert data["config"]["dynamic-jobs-enabled"] is False
