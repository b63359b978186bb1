"""Fidelity notes on the inputs of a run: parts without effect, and unusual ones."""

from __future__ import annotations

from pathlib import Path

from batkube.cluster.jobs.submission_forms import SubmissionForm
from batkube.cluster.mapping import ANY_SCHEDULER, ResourceModel
from batkube.execution.profiles.run_times import only_computes
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.quantities import CPU
from batkube.platforms.model import Platform
from batkube.platforms.simgrid.power import WATTAGE
from batkube.policies.registry.profile_access import profile_reads
from batkube.scenarios.scenario import BATSIM_PREFIX
from batkube.simulation.preparation.inputs import Inputs
from batkube.simulation.preparation.job_forms import JobForm
from batkube.simulation.preparation.sanity_notes import note_unsuitable_inputs
from batkube.workloads.model import WHOLE_GANG, GangTerms, Job, Profile, RawProfile, Workload, leaf_profiles

#: Forms of jobs in which schedulers do not see that pods belong together.
_UNGROUPED_FORMS = (SubmissionForm.PODS, SubmissionForm.INDEXED_JOB)
#: Batsim's types of profiles that move data from or to a storage.
_STORAGE_PROFILE_TYPES = ("parallel_homogeneous_pfs", "data_staging")
#: Those that are read from files of their own and send nothing.
_LOCAL_PROFILE_TYPES = ("usage_trace",)

_SINGLE_SCHEDULER = FidelityNote("scheduler", "jobs request a scheduler by name, but the run has only one")
_PODS_PLACED_SINGLY = FidelityNote(
    "scheduler", "a job's pods are placed one by one, and hold their nodes until the last one has a node"
)
_WHOLE_MACHINES = FidelityNote("workload", "jobs use whole machines, but pods of objects can still run on these")
_NO_CPU_REQUESTS = FidelityNote("workload", "jobs request no cpu, so any number of them can share a node")
_ENERGY_NOT_COUNTED = FidelityNote("platform", "defines the power of machines, but the run ignores it without --energy")
_UNUSED_LINKS = FidelityNote("platform", "describes links, but no job communicates: the network has no effect")
_UNUSED_STORAGES = FidelityNote("platform", "has storages, but no job reads or writes them")
_FORESIGHT = FidelityNote("policy", "reads job.profile, a job's true future, which no scheduler knows")
_IGNORED_GANG_TERMS = FidelityNote(
    "scheduler", "jobs have a min_member or min_resources, which only some kinds of PodGroup can express"
)
_IGNORED_FLAGS = FidelityNote(
    "scheduler", "ignores flags because it has a configuration file; set them in --scheduler-config"
)
_OTHER_RANDOM_NUMBERS = FidelityNote(
    "explain", "--explain makes the scheduler log more, so it draws other random numbers, as with another seed"
)


def note_inputs(inputs: Inputs, notes: FidelityNotes) -> None:
    """Note the readers' assumptions, inputs without effect, and policies that read the true run times."""
    sources: list[Workload | Platform] = [*inputs.workloads, inputs.platform]
    for source in sources:
        for note, count in source.notes:
            # Only the file name, so that a run that is repeated elsewhere has the same notes.
            notes.add(note, example=Path(source.source).name, count=count)
    _note_jobs(inputs, notes)
    _note_platform(inputs, notes)
    note_unsuitable_inputs(inputs, notes)
    if inputs.policy is not None and not inputs.scenario.scheduler.startswith(BATSIM_PREFIX):
        places = profile_reads(type(inputs.policy))
        if places:
            notes.add(_FORESIGHT, example=places[0], count=len(places))
    if inputs.external_programs:
        from batkube.programs.observation.decision_log import VERBOSITY
        from batkube.programs.selection.ignored_flags import ignored_flags

        for program in inputs.external_programs:
            if VERBOSITY in program.arguments:
                notes.add(_OTHER_RANDOM_NUMBERS, example=program.name)
            for flag, field in ignored_flags(program):
                notes.add(_IGNORED_FLAGS, example=f"{program.name} {flag}: write {field}")


def _note_jobs(inputs: Inputs, notes: FidelityNotes) -> None:
    """Note jobs that a real cluster would treat differently, or whose properties are ignored."""
    jobs, by_requests = inputs.jobs, inputs.model is ResourceModel.REQUESTS
    jobs_with_scheduler = [job for job in jobs if job.scheduler not in ANY_SCHEDULER]
    if jobs_with_scheduler and inputs.policy is not None:
        notes.add(
            _SINGLE_SCHEDULER,
            example=f"job {jobs_with_scheduler[0].key} asks for {jobs_with_scheduler[0].scheduler!r}",
            count=len(jobs_with_scheduler),
        )
    gangs = [job for job in jobs if job.size > 1]
    if gangs and any(job_form.form in _UNGROUPED_FORMS for job_form in inputs.job_forms.values()):
        notes.add(_PODS_PLACED_SINGLY, example=f"job {gangs[0].key} has {gangs[0].size} pods", count=len(gangs))
    for note, concerned in (
        (_WHOLE_MACHINES, jobs if inputs.objects and not by_requests else []),
        (_NO_CPU_REQUESTS, [job for job in jobs if by_requests and CPU not in dict(job.requests)]),
        (_IGNORED_GANG_TERMS, _jobs_with_ignored_terms(inputs)),
    ):
        if concerned:
            notes.add(note, example=f"job {concerned[0].key}", count=len(concerned))


def _note_platform(inputs: Inputs, notes: FidelityNotes) -> None:
    """Note parts of the platform without effect."""
    platform = inputs.platform
    profiles = {id(job.profile): job.profile for job in inputs.jobs}.values()
    powered = [machine.name for machine in platform.machines if WATTAGE in machine.properties]
    if powered and not inputs.scenario.energy:
        notes.add(_ENERGY_NOT_COUNTED, example=f"machine {powered[0]}", count=len(powered))
    if platform.link_count and not any(map(_communicates, profiles)):
        notes.add(_UNUSED_LINKS, example=Path(platform.source).name, count=platform.link_count)
    if platform.storages and not any(map(_uses_storage, profiles)):
        notes.add(_UNUSED_STORAGES, example=platform.storages[0], count=len(platform.storages))


def _jobs_with_ignored_terms(inputs: Inputs) -> list[Job]:
    """Return the jobs whose gang terms are at least partly ignored; jobs without a scheduler get the main one."""
    jobs = [job for job in inputs.jobs if job.gang != WHOLE_GANG]
    forms = inputs.job_forms
    main = next(iter(forms.values()), None)
    return [job for job in jobs if not _expresses_terms(job.gang, forms.get(job.scheduler, main))]


def _expresses_terms(terms: GangTerms, job_form: JobForm | None) -> bool:
    """Return whether a form expresses all gang terms; Volcano itself creates the PodGroup of a Volcano Job."""
    if job_form is None or job_form.form not in (SubmissionForm.POD_GROUP, SubmissionForm.VOLCANO_JOB):
        return False
    return not terms.min_resources or (job_form.form is SubmissionForm.POD_GROUP and job_form.dialect.has_min_resources)


def _uses_storage(profile: Profile) -> bool:
    return any(isinstance(one, RawProfile) and one.kind in _STORAGE_PROFILE_TYPES for one in leaf_profiles(profile))


def _communicates(profile: Profile) -> bool:
    parts = leaf_profiles(profile)
    return any(
        not only_computes(one) and not (isinstance(one, RawProfile) and one.kind in _LOCAL_PROFILE_TYPES)
        for one in parts
    )
