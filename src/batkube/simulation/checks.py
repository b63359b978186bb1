"""What can be known to be wrong before the run starts is said before the run starts."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.execution.profiles import NotModelled, duration_of
from batkube.kernel.errors import InputError
from batkube.kernel.quantities import format_amount
from batkube.platforms.model import Machine, Platform
from batkube.policies.rooms import Room
from batkube.workloads.model import Job, Profile, Requests, Workload


def check_jobs(workload: Workload, platform: Platform, room: Room) -> None:
    """Refuse jobs that could never run: too large for the empty platform, or of a kind that is not modelled."""
    fits: dict[tuple[int, Requests], bool] = {}
    runnable: set[tuple[int, int]] = set()
    for job in workload.jobs:
        shape = (job.size, job.requests)
        if shape not in fits:
            fits[shape] = room.fit(job) is not None
        if not fits[shape]:
            raise InputError(
                workload.source,
                at=f"job {job.name!r}",
                problem=f"can never run: it asks for {_demand(job)}, and the platform is {_offer(platform.machines)}",
                remedy="use a larger --platform, or `batkube workload convert` to scale the jobs",
            )
        if (id(job.profile), job.size) not in runnable:
            _check_profile(job, job.profile, workload, platform)
            runnable.add((id(job.profile), job.size))


def _check_profile(job: Job, profile: Profile, workload: Workload, platform: Platform) -> None:
    machines = [platform.machines[rank % len(platform.machines)] for rank in range(job.size)]
    try:
        duration_of(profile, machines)
    except NotModelled as reason:
        raise InputError(
            workload.source,
            at=f"profile {profile.name!r} of job {job.name!r}",
            problem=str(reason),
            remedy="profiles that can be run: delay, composed, and parallel ones that only compute",
        ) from reason


def _demand(job: Job) -> str:
    wants = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in job.requests)
    count = f"{job.size} machines" if job.size > 1 else "1 machine"
    return f"{count} with {wants} each" if wants else count


def _offer(machines: Sequence[Machine]) -> str:
    largest: dict[str, int] = {}
    for machine in machines:
        for name, amount in machine.capacity.items():
            largest[name] = max(amount, largest.get(name, 0))
    most = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in largest.items() if name != "pods")
    return f"{len(machines)} machine{'s' if len(machines) != 1 else ''} with at most {most}"
