"""Checks of allocations: the machines must exist and be usable, and their number must be that of the job.

Imitated: Batsim 4.2.1, server_on_execute_job in src/server.cpp.
"""

from __future__ import annotations

from batkube.batsim.protocol.messages import ExecuteJob
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.jobs import LiveJob
from batkube.batsim.state.machines import LiveMachine, Machines, MachineState
from batkube.batsim.state.options import Options
from batkube.kernel.intervals import format_intervals
from batkube.workloads.model import Composed, ParallelHomogeneousTotal, Profile


def check_machines(machines: Machines, options: Options, live: LiveJob, event: ExecuteJob) -> None:
    """Reject machines that do not exist, that run other jobs and are not shared, or that cannot compute now."""
    allocation = f"('{format_intervals(event.machines)}')"
    if not machines.all_exist(event.machines):
        raise BatsimAbort(f"Cannot get machine {event.machines.bit_length() - 1}: it does not exist")
    for machine in machines.select(event.machines):
        name = f"machine {machine.id} (hostname='{machine.name}')"
        role = _unshared_role(options, machine)
        if machine.jobs and role is not None:
            raise BatsimAbort(
                f"Job '{live.id}': Invalid allocation {allocation}: {name} is currently computing jobs (these ones: "
                f"{{{', '.join(sorted(machine.jobs))}}}) whereas time-sharing on {role} machines is disabled."
            )
        if machine.state not in (MachineState.COMPUTING, MachineState.IDLE):
            raise BatsimAbort(
                f"Job '{live.id}': Invalid job allocation {allocation}: {name} cannot compute jobs now (the machine is "
                f"not computing nor idle, its state is '{machine.state}')"
            )


def _unshared_role(options: Options, machine: LiveMachine) -> str | None:
    """Return the role that forbids sharing a machine, if any; every compute node is also storage (permissions.hpp)."""
    if not machine.is_storage and not options.allows_compute_sharing:
        return "compute"
    return None if options.allows_storage_sharing else "storage"


def check_size(live: LiveJob, event: ExecuteJob) -> None:
    """Reject a number of machines other than the requested one, unless the profile supports any number."""
    if _is_divisible(live.job.profile):
        return
    allocation, size = f"allocation ('{format_intervals(event.machines)}')", live.job.size
    if event.mapping is not None and len(event.mapping) != size:
        raise BatsimAbort(
            f"Job '{live.id}' {allocation} is invalid. The decision process set a custom mapping for this job, but the "
            f"custom mapping size ({len(event.mapping)}) does not match the job requested number of machines "
            f"({size})."
        )
    if event.mapping is None and event.machines.bit_count() != size:
        raise BatsimAbort(
            f"Job '{live.id}' {allocation} is invalid. The job requires {size} machines but only "
            f"{event.machines.bit_count()} were given. Using a different number of machines than the one requested "
            "is prevented by default."
        )


def _is_divisible(profile: Profile) -> bool:
    """Return whether the amounts of a profile are totals, which any number of machines can share."""
    parts = profile.parts if isinstance(profile, Composed) else (profile,)
    return all(isinstance(part, ParallelHomogeneousTotal) for part in parts)
