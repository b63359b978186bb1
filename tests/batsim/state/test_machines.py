"""The machines of a simulation: their states, their jobs, and how long they were in each state."""

from __future__ import annotations

import pytest

from batkube.batsim.state.machines import LiveMachine, Machines, MachineState
from batkube.kernel.instants import Instant


@pytest.fixture
def machines() -> Machines:
    """Three machines, of which the last one is a storage."""
    return Machines([LiveMachine(number, f"host{number}", {}, {}, number == 2) for number in range(3)], "master")


def states(machines: Machines) -> list[MachineState]:
    return [machine.state for machine in machines.all]


def test_sets_of_machines_are_bit_masks_of_ids(machines: Machines) -> None:
    assert [machine.name for machine in machines.select(0b101)] == ["host0", "host2"]
    assert machines.first(0b110).name == "host1"
    assert (machines.all_exist(0b111), machines.all_exist(0b1000)) == (True, False)


def test_a_machine_is_idle_again_when_its_last_job_has_ended(machines: Machines) -> None:
    machines.start_job("w!1", 0b11, Instant(10))
    machines.start_job("w!2", 0b01, Instant(20))

    machines.end_job("w!1", 0b11, Instant(30))

    assert states(machines)[:2] == [MachineState.COMPUTING, MachineState.IDLE]
    assert machines.all[0].jobs == {"w!2"}


def test_a_machine_that_became_unavailable_stays_so_when_its_job_ends(machines: Machines) -> None:
    machines.start_job("w!1", 0b1, Instant(0))
    machines.set_state(machines.all[0], MachineState.UNAVAILABLE, Instant(5))

    machines.end_job("w!1", 0b1, Instant(9))

    assert states(machines)[0] is MachineState.UNAVAILABLE


def test_an_unavailable_machine_counts_as_computing_when_a_job_starts_on_it(machines: Machines) -> None:
    machines.set_state(machines.all[0], MachineState.UNAVAILABLE, Instant(5))

    machines.start_job("w!1", 0b1, Instant(6))

    assert states(machines)[0] is MachineState.COMPUTING


def test_times_in_states_are_summed_over_machines_up_to_their_last_change(machines: Machines) -> None:
    machines.start_job("w!1", 0b11, Instant(10))
    machines.end_job("w!1", 0b01, Instant(25))

    assert machines.times == {MachineState.IDLE: 20, MachineState.COMPUTING: 15}


def test_storage_is_counted_only_once_its_state_has_changed(machines: Machines) -> None:
    assert machines.counts[MachineState.IDLE] == 2

    machines.start_job("w!1", 0b100, Instant(1))
    machines.end_job("w!1", 0b100, Instant(2))

    assert (machines.counts[MachineState.IDLE], machines.counts[MachineState.COMPUTING]) == (2, 0)


def test_each_start_and_end_of_a_job_is_recorded_once(machines: Machines) -> None:
    recorded: list[Instant] = []
    machines.on_change = recorded.append

    machines.start_job("w!1", 0b11, Instant(10))
    machines.end_job("w!1", 0b11, Instant(25))

    assert recorded == [10, 25]
