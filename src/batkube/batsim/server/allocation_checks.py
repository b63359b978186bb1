"""Which allocations are refused: machines that are busy or away, and too many or too few of them.

Imitated: Batsim 4.2.1, src/server.cpp, server_on_execute_job.
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
    """Refuse machines that do not exist, are busy, or compute nothing now."""
    where = f"('{format_intervals(event.machines)}')"
    if not machines.all_exist(event.machines):
        raise BatsimAbort(f"Cannot get machine {event.machines.bit_length() - 1}: it does not exist")
    for machine in machines.select(event.machines):
        name = f"machine {machine.id} (hostname='{machine.name}')"
        kind = _unshared_kind(options, machine)
        if machine.jobs and kind is not None:
            raise BatsimAbort(
                f"Job '{live.id}': Invalid allocation {where}: {name} is currently computing jobs (these ones: "
                f"{{{', '.join(sorted(machine.jobs))}}}) whereas time-sharing on {kind} machines is disabled."
            )
        if machine.state not in (MachineState.COMPUTING, MachineState.IDLE):
            raise BatsimAbort(
                f"Job '{live.id}': Invalid job allocation {where}: {name} cannot compute jobs now (the machine is "
                f"not computing nor idle, its state is '{machine.state}')"
            )


def _unshared_kind(options: Options, machine: LiveMachine) -> str | None:
    """Return as which kind a machine is not shared: a compute node counts as storage, too (Batsim: permissions.hpp)."""
    if not machine.is_storage and not options.allows_compute_sharing:
        return "compute"
    return None if options.allows_storage_sharing else "storage"


def check_size(live: LiveJob, event: ExecuteJob) -> None:
    """Refuse another number of machines than the job asks for, unless its work is shared out over any number."""
    if _is_divisible(live.job.profile):
        return
    where, size = f"allocation ('{format_intervals(event.machines)}')", live.job.size
    if event.mapping is not None and len(event.mapping) != size:
        raise BatsimAbort(
            f"Job '{live.id}' {where} is invalid. The decision process set a custom mapping for this job, but the "
            f"custom mapping size ({len(event.mapping)}) does not match the job requested number of machines "
            f"({size})."
        )
    if event.mapping is None and event.machines.bit_count() != size:
        raise BatsimAbort(
            f"Job '{live.id}' {where} is invalid. The job requires {size} machines but only "
            f"{event.machines.bit_count()} were given. Using a different number of machines than the one requested "
            "is prevented by default."
        )


def _is_divisible(profile: Profile) -> bool:
    """Return whether a profile gives totals, which any number of machines can share."""
    parts = profile.parts if isinstance(profile, Composed) else (profile,)
    return all(isinstance(part, ParallelHomogeneousTotal) for part in parts)
