"""Reject jobs that can never run, before the run starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from batkube.cluster.mapping import ResourceModel
from batkube.execution.profiles.run_times import run_time_on
from batkube.execution.profiles.task_shapes import UnsupportedProfile
from batkube.kernel.errors import InputError
from batkube.kernel.instants import LATEST_NS
from batkube.kernel.quantities import PODS, format_amount
from batkube.platforms.model import Machine, Platform
from batkube.workloads.formats.batsim.profiles import batsim_type_of
from batkube.workloads.model import Job, Requests, Workload

if TYPE_CHECKING:
    from batkube.execution.profiles.fluid_model import FluidModel

#: The maximum number of profiles in a message.
_MAX_PROFILES_IN_MESSAGE = 12
_DROP_REMEDY = "remove such jobs with: batkube workload convert --for PLATFORM --cannot-run drop"


class ImpossibleJob(NamedTuple):
    """A job that can never run, with the reason."""

    job: Job
    problem: str
    remedy: str | None
    #: Whether the reason is the profile, which affects all jobs of that profile; otherwise it is the job's request.
    is_of_profile: bool


def check_jobs(
    workload: Workload,
    platform: Platform,
    model: ResourceModel,
    fluid_model: FluidModel | None = None,
    *,
    checks_profiles: bool = True,
    may_grow: bool = False,
) -> list[Job]:
    """Raise InputError if jobs can never run: too large for the empty platform, or with an unsupported profile.

    The error has the first such job, and all unsupported profiles. Without `checks_profiles`, profiles are not checked,
    because a real Batsim executes them. If the platform `may_grow`, return the jobs that are too large for it so far.
    """
    first: ImpossibleJob | None = None
    counts: Counter[str] = Counter()
    for refusal in impossible_jobs(
        workload, platform, model, fluid_model, checks_sizes=not may_grow, checks_profiles=checks_profiles
    ):
        first = first or refusal
        if refusal.is_of_profile:
            profile = refusal.job.profile
            counts[f"{profile.name!r} ({batsim_type_of(profile)})"] += 1
    if first is None:
        rest = impossible_jobs(workload, platform, model, None, checks_profiles=False) if may_grow else ()
        return [impossible.job for impossible in rest]
    job, at = first.job, f"job {first.job.name!r}"
    if first.is_of_profile:
        at = f"profile {job.profile.name!r} of {at}"
    raise InputError(workload.source, at=at, problem=f"{first.problem}{_profiles_text(counts)}", remedy=first.remedy)


def _profiles_text(counts: Counter[str]) -> str:
    """List the unsupported profiles, if there are several."""
    if len(counts) < 2:
        return ""
    texts = [
        f"{name} of {count:,} job{'s' * (count != 1)}" for name, count in counts.most_common(_MAX_PROFILES_IN_MESSAGE)
    ]
    more = f" and {len(counts) - _MAX_PROFILES_IN_MESSAGE:,} more" if len(counts) > _MAX_PROFILES_IN_MESSAGE else ""
    return f"; {len(counts):,} profiles cannot be run: {', '.join(texts)}{more}"


def impossible_jobs(
    workload: Workload,
    platform: Platform,
    model: ResourceModel,
    fluid_model: FluidModel | None,
    *,
    checks_sizes: bool = True,
    checks_profiles: bool = True,
) -> Iterator[ImpossibleJob]:
    """Yield each job that can never run on an empty platform."""
    places: dict[Requests, int] = {}
    machines = [machine for machine in platform.machines if machine.takes_any_pod]
    offers = Counter(tuple(sorted(machine.capacity.items())) for machine in machines)
    #: The problem of each combination of profile, size and presence of a walltime, or None.
    problems: dict[tuple[int, int, bool], tuple[str, str | None] | None] = {}
    # A scheduler may use any machine for any job, so check run times on the slowest machine.
    slowest = platform.slowest
    for job in workload.jobs:
        if job.requests not in places:
            most = 1 if model is ResourceModel.MACHINES else None
            places[job.requests] = sum(
                _pods_per_machine(dict(offer), job.requests, most) * count for offer, count in offers.items()
            )
        if checks_sizes and places[job.requests] < job.size:
            demand, offer = _demand_text(job, model), _capacity_text(machines)
            problem = f"can never run: it requests {demand}, but the platform has {offer}"
            proposal = machines_instead_of_cores(platform, job.size) if model is ResourceModel.MACHINES else ""
            larger = f"jobs take whole machines: use --platform {proposal}" if proposal else "use a larger --platform"
            yield ImpossibleJob(job, problem, f"{larger}, or {_DROP_REMEDY}", is_of_profile=False)
            continue
        case = (id(job.profile), job.size, job.walltime is None)
        if checks_profiles and case not in problems:
            problems[case] = _profile_problem(job, slowest, fluid_model)
        if checks_profiles and (reason := problems[case]) is not None:
            yield ImpossibleJob(job, *reason, is_of_profile=True)


def machines_instead_of_cores(platform: Platform, size: int) -> str:
    """Return the shorthand of a platform of one-core machines, if jobs of this size need it; empty otherwise.

    A trace of 128 processors is often run on `1x128` by mistake: a single machine, all of which each job takes.
    """
    cores = sum(machine.cpu_milli for machine in platform.machines) // 1000
    return f"{cores}x1" if len(platform.machines) < size <= cores else ""


def _pods_per_machine(capacity: Mapping[str, int], requests: Requests, most: int | None) -> int:
    """Return the number of pods with `requests` that fit on an empty machine, at most `most`."""
    places = [capacity.get(name, 0) // amount for name, amount in requests if amount > 0]
    return min([*places, capacity.get(PODS, 0) if most is None else most])


def _profile_problem(job: Job, slowest: Machine, fluid_model: FluidModel | None) -> tuple[str, str | None] | None:
    """Return the problem of a job's profile and the remedy; None if it is supported."""
    try:
        if fluid_model is None:
            length = run_time_on(job.profile, [slowest] * job.size).length
        else:
            length = fluid_model.isolated_run_time(job).length
    except UnsupportedProfile as reason:
        return str(reason), f"see docs/reference/profiles.md for the platform that each type needs, or {_DROP_REMEDY}"
    except ValueError as error:
        return f"takes too long: {error}", None
    # A walltime also ends a profile that repeats without end.
    if length > LATEST_NS and job.walltime is None:
        return "takes longer than 292 years, the longest possible run", "shorten it, or add a walltime to the job"
    return None


def _demand_text(job: Job, model: ResourceModel) -> str:
    unit = "machine" if model is ResourceModel.MACHINES else "pod"
    request_text = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in job.requests)
    if job.size == 1:
        return f"a {unit} with {request_text}" if request_text else f"a {unit}"
    return f"{job.size} {unit}s with {request_text} each" if request_text else f"{job.size} {unit}s"


def _capacity_text(machines: Sequence[Machine]) -> str:
    if not machines:
        return "only machines that are cordoned or have taints, which its pods do not tolerate"
    largest: dict[str, int] = {}
    for machine in machines:
        for name, amount in machine.capacity.items():
            largest[name] = max(amount, largest.get(name, 0))
    most = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in largest.items() if name != PODS)
    return f"{len(machines)} machine{'s' if len(machines) != 1 else ''} with at most {most}"
