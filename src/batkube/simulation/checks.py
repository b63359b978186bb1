"""What can be known to be wrong before the run starts is said before the run starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.mapping import ResourceModel
from batkube.execution.profiles import run_time_on
from batkube.execution.shapes import NotModelled
from batkube.kernel.errors import InputError
from batkube.kernel.instants import LATEST_NS
from batkube.kernel.quantities import PODS, format_amount
from batkube.platforms.model import Machine, Platform
from batkube.workloads.model import Job, Requests, Workload

if TYPE_CHECKING:
    from batkube.execution.yard import Yard


def check_jobs(
    workload: Workload,
    platform: Platform,
    model: ResourceModel,
    yard: Yard | None = None,
    *,
    checks_profiles: bool = True,
) -> None:
    """Refuse jobs that could never run: too large for the empty platform, or of a kind that is not modelled.

    Without `checks_profiles` what jobs do is somebody else's business.
    """
    places: dict[Requests, int] = {}
    machines = [machine for machine in platform.machines if machine.takes_any_pod]
    offers = Counter(tuple(sorted(machine.capacity.items())) for machine in machines)
    runnable: set[tuple[int, int, bool]] = set()
    # Any machine may be given to any job, so what can be run can be run on the slowest.
    slowest = platform.slowest
    for job in workload.jobs:
        if job.requests not in places:
            most = 1 if model is ResourceModel.MACHINES else None
            places[job.requests] = sum(
                _places(dict(offer), job.requests, most) * count for offer, count in offers.items()
            )
        if places[job.requests] < job.size:
            demand, offer = _demand(job, model), _offer(machines)
            raise InputError(
                workload.source,
                at=f"job {job.name!r}",
                problem=f"can never run: it asks for {demand}, and the platform is {offer}",
                remedy="use a larger --platform, or `batkube workload convert` to scale the jobs",
            )
        case = (id(job.profile), job.size, job.walltime is None)
        if checks_profiles and case not in runnable:
            _check_profile(job, workload, slowest, yard)
            runnable.add(case)


def _places(capacity: Mapping[str, int], requests: Requests, most: int | None) -> int:
    """Return how many pods of `requests` an empty machine can take; at most `most`, if that is given."""
    places = [capacity.get(name, 0) // amount for name, amount in requests if amount > 0]
    return min([*places, capacity.get(PODS, 0) if most is None else most])


def _check_profile(job: Job, workload: Workload, slowest: Machine, yard: Yard | None) -> None:
    at = f"profile {job.profile.name!r} of job {job.name!r}"
    try:
        if yard is None:
            length = run_time_on(job.profile, [slowest] * job.size).length
        else:
            length = yard.length_alone(job).length
    except NotModelled as reason:
        raise InputError(
            workload.source,
            at=at,
            problem=str(reason),
            remedy="see docs/reference/profiles.md for what each type of profile needs of the platform",
        ) from reason
    except ValueError as error:
        raise InputError(workload.source, at=at, problem=f"takes too long: {error}") from error
    # A walltime ends even a profile that repeats for ever.
    if length > LATEST_NS and job.walltime is None:
        raise InputError(
            workload.source,
            at=at,
            problem="takes more than the 292 years a run can last",
            remedy="shorten it, or give the job a walltime",
        )


def _demand(job: Job, model: ResourceModel) -> str:
    unit = "machine" if model is ResourceModel.MACHINES else "pod"
    wants = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in job.requests)
    if job.size == 1:
        return f"a {unit} with {wants}" if wants else f"a {unit}"
    return f"{job.size} {unit}s with {wants} each" if wants else f"{job.size} {unit}s"


def _offer(machines: Sequence[Machine]) -> str:
    if not machines:
        return "all of machines with taints, which its pods do not tolerate"
    largest: dict[str, int] = {}
    for machine in machines:
        for name, amount in machine.capacity.items():
            largest[name] = max(amount, largest.get(name, 0))
    most = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in largest.items() if name != PODS)
    return f"{len(machines)} machine{'s' if len(machines) != 1 else ''} with at most {most}"
