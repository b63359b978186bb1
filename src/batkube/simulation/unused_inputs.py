"""Inputs that have no effect on a run (a network that no job uses, flags that a program ignores), as fidelity notes."""

from __future__ import annotations

from pathlib import Path

from batkube.cluster.submission_forms import SubmissionForm
from batkube.execution.profiles import only_computes
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.platforms.power import WATTAGE
from batkube.policies.foresight import foresight_of
from batkube.scenarios.scenario import BATSIM_PREFIX
from batkube.simulation.inputs import Inputs
from batkube.simulation.job_forms import JobForm
from batkube.workloads.model import WHOLE, Foreign, GangTerms, Job, Profile, simple_parts

#: Batsim's types of profiles that move data from or to a storage.
_STORING = ("parallel_homogeneous_pfs", "data_staging")
#: Those that are read from files of their own and send nothing.
_SILENT = ("usage_trace",)

_POWER = FidelityNote("platform", "tells what machines draw, and the run counts no energy: --energy does")
_LINKS = FidelityNote("platform", "describes links, and no job communicates: the network makes no difference")
_STORAGES = FidelityNote("platform", "has storages, and no job reads or writes them")
_FORESIGHT = FidelityNote("policy", "reads job.profile, a job's true future, which no scheduler knows")
_TERMS = FidelityNote("scheduler", "jobs have a min_member or min_resources, which only some PodGroups can say")
_FLAGS = FidelityNote("scheduler", "ignores flags beside its configuration file; set them by --scheduler-config")


def note_unused_inputs(inputs: Inputs, notes: FidelityNotes) -> None:
    """Say what of the platform and of the programs' arguments has no effect, and what a policy should not know."""
    platform = inputs.platform
    if unheard := _unheard_terms(inputs):
        notes.add(_TERMS, example=f"job {unheard[0].key}", count=len(unheard))
    profiles = {id(job.profile): job.profile for workload in inputs.workloads for job in workload.jobs}.values()
    powered = [machine.name for machine in platform.machines if WATTAGE in machine.properties]
    if powered and not inputs.scenario.energy:
        notes.add(_POWER, example=f"machine {powered[0]}", count=len(powered))
    if platform.link_count and not any(map(_communicates, profiles)):
        notes.add(_LINKS, example=Path(platform.source).name, count=platform.link_count)
    if platform.storages and not any(map(_stores, profiles)):
        notes.add(_STORAGES, example=platform.storages[0], count=len(platform.storages))
    if inputs.policy is not None and not inputs.scenario.scheduler.startswith(BATSIM_PREFIX):
        places = foresight_of(type(inputs.policy))
        if places:
            notes.add(_FORESIGHT, example=places[0], count=len(places))
    if inputs.outside:
        from batkube.programs.idle_flags import idle_flags

        for program in inputs.outside:
            for flag, field in idle_flags(program):
                notes.add(_FLAGS, example=f"{program.name} {flag}: write {field}")


def _unheard_terms(inputs: Inputs) -> list[Job]:
    """Return the jobs whose terms nobody hears, or not all of them; who names no scheduler of the run gets its main."""
    jobs = [job for workload in inputs.workloads for job in workload.jobs if job.gang != WHOLE]
    forms = inputs.job_forms
    main = next(iter(forms.values()), None)
    return [job for job in jobs if not _is_heard(job.gang, forms.get(job.scheduler, main))]


def _is_heard(terms: GangTerms, job_form: JobForm | None) -> bool:
    """Return whether jobs of a form tell all their terms; the PodGroup of a Volcano Job is made by Volcano."""
    if job_form is None or job_form.form not in (SubmissionForm.POD_GROUP, SubmissionForm.VOLCANO_JOB):
        return False
    return not terms.min_resources or (job_form.form is SubmissionForm.POD_GROUP and job_form.dialect.has_resources)


def _stores(profile: Profile) -> bool:
    return any(isinstance(one, Foreign) and one.kind in _STORING for one in simple_parts(profile))


def _communicates(profile: Profile) -> bool:
    parts = simple_parts(profile)
    return any(not only_computes(one) and not (isinstance(one, Foreign) and one.kind in _SILENT) for one in parts)
