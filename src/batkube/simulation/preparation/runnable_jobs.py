"""Keep the jobs of a workload that can run on a platform; remove the others, or replace their profiles by delays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from msgspec.structs import replace as replace_fields

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, duration
from batkube.platforms.reader import read_platform
from batkube.simulation.preparation.feasibility import ImpossibleJob, impossible_jobs
from batkube.simulation.preparation.inputs import fluid_model_of, resource_model_of
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.formats.batsim.profiles import batsim_type_of
from batkube.workloads.model import Job, Workload

#: The actions for jobs that cannot run, besides a fixed time.
DROP, WALLTIME = "drop", "walltime"


def keep_runnable(workload: Workload, platform: str, action: str) -> Workload:
    """Remove the jobs that cannot run on a platform, or replace their profiles by delays.

    `action` is `drop`, a run time such as `10m`, or `walltime` (the job's own). A job that requests more than the
    platform has is always removed. Raises InputError.
    """
    length = None if action in (DROP, WALLTIME) else _replacement_time(action)
    model = resource_model_of([workload])
    machines = read_platform(platform)
    fluid_model = fluid_model_of([workload], machines, model, has_energy=False)
    refused = {job.job.name: job for job in impossible_jobs(workload, machines, model, fluid_model)}
    delays, jobs = DelayProfiles(), list[Job]()
    notes: Counter[FidelityNote] = Counter()
    for job in workload.jobs:
        refusal = refused.get(job.name)
        if refusal is None:
            jobs.append(job)
            continue
        time = job.walltime if action == WALLTIME else length
        is_replaced = refusal.is_of_profile and time is not None
        if is_replaced:
            assert time is not None
            jobs.append(replace_fields(job, profile=delays.profile_for(time)))
        notes[_note(refusal, is_replaced=is_replaced)] += 1
    if not jobs:
        problem, remedy = f"no job can run on {platform}", "use another platform, or another --cannot-run"
        raise InputError(workload.source, problem=problem, remedy=remedy)
    return replace(workload, jobs=jobs, notes=(*workload.notes, *notes.items()))


def _replacement_time(action: str) -> Duration:
    try:
        length = duration(action)
    except ValueError as error:
        remedy = f"write {DROP}, {WALLTIME}, or a time such as 10m"
        raise InputError("--cannot-run", problem=str(error), remedy=remedy) from error
    return length


def _note(refusal: ImpossibleJob, *, is_replaced: bool) -> FidelityNote:
    consequence = "takes a fixed time instead" if is_replaced else "was left out"
    if not refusal.is_of_profile:
        return FidelityNote("workload", f"a job requests more than the platform has, and {consequence}")
    profile = refusal.job.profile
    subject = f"profile {profile.name!r} ({batsim_type_of(profile)}) {refusal.problem}"
    return FidelityNote("workload", f"{subject}: its job {consequence}")
