"""The form in which jobs are submitted: that of the scenario, or of their scheduler's entry in the catalogue."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.client import BulkClient, Client
from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import PastAttempts
from batkube.cluster.jobs.submission_forms import (
    DEFAULT_QUEUE,
    KUEUE,
    POD_GROUP_APIS,
    VOLCANO_JOBS,
    GroupedPodFactory,
    PodGroupApi,
    SubmissionForm,
    indexed_job_of,
    local_queue_of,
    priority_class_of,
    queue_name,
    queue_of,
    volcano_job_of,
)
from batkube.cluster.mapping import NAMESPACE, PodFactory, ResourceModel
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.jobs.creators import JobCreator, ObjectCreator, PodCreator, PodGroupCreator
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant
from batkube.programs.program import ExternalProgram
from batkube.schedulers.named_programs import ProgramStart
from batkube.workloads.model import Job

JOBS = "jobs.batch"
_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_VOLCANO_JOBS = f"jobs.{VOLCANO_JOBS.partition('/')[0]}"
_LOCAL_QUEUES = f"localqueues.{KUEUE.partition('/')[0]}"
_CLUSTER_QUEUES = f"clusterqueues.{KUEUE.partition('/')[0]}"
#: Volcano's Queues are of the same group and version as its PodGroups.
_VOLCANO = POD_GROUP_APIS["scheduling.volcano.sh/v1beta1"]
#: Forms in which a job names a Queue of its dialect.
_FORMS_WITH_QUEUE = (SubmissionForm.POD_GROUP, SubmissionForm.VOLCANO_JOB)


class JobForm(NamedTuple):
    """The form of the jobs of one scheduler."""

    form: SubmissionForm
    #: Of its PodGroups, where there are any.
    dialect: PodGroupApi = _VOLCANO


JobForms = Mapping[str, JobForm]
"""The form of jobs, by `schedulerName`."""


def job_forms_of(
    requested: str | None, schedulers: Sequence[ExternalProgram], objects: Iterable[KubeObject]
) -> JobForms:
    """Return the form of the jobs of each scheduler: the requested one, or the scheduler's own.

    `objects` include the CustomResourceDefinitions of the run. Raises InputError for a form that a scheduler does not
    support.
    """
    if not schedulers:
        return {}
    from batkube.programs.startup.command_lines import served_scheduler_names

    kinds = {str(one["metadata"].get("name")) for one in objects if one["kind"] == "CustomResourceDefinition"}
    job_forms: dict[str, JobForm] = {}
    for scheduler in schedulers:
        for name in served_scheduler_names(scheduler):
            job_forms.setdefault(name, _job_form(requested, scheduler, kinds))
    return job_forms


def is_owned_by_controller(job_form: JobForm) -> bool:
    """Return whether a controller creates the pods of such jobs."""
    return job_form.form.is_owned


def require_job_controller(job_forms: JobForms) -> None:
    """Raise InputError for forms that need the Job controller, in a run without it."""
    for form, _ in job_forms.values():
        if form in (SubmissionForm.INDEXED_JOB, SubmissionForm.KUEUE_JOB):
            problem = f"is none, but jobs submitted as {form.value!r} need the Job controller"
            raise InputError("controllers", problem=problem, remedy="omit it, or use --submit-as pods")


def _job_form(requested: str | None, scheduler: ExternalProgram, kinds: set[str]) -> JobForm:
    dialects = list(_defined_dialects(scheduler.start, kinds))
    forms = [SubmissionForm.PODS, SubmissionForm.INDEXED_JOB]
    forms += [SubmissionForm.POD_GROUP] if dialects else []
    forms += [SubmissionForm.VOLCANO_JOB] if _VOLCANO_JOBS in kinds else []
    forms += [SubmissionForm.KUEUE_JOB] if _LOCAL_QUEUES in kinds else []
    text = str(requested or scheduler.start.submit_as)
    if text not in forms:
        group = scheduler.start.pod_group
        if text == SubmissionForm.POD_GROUP and group:
            problem = f"{scheduler.name} uses PodGroups of {group}, but that kind is not defined"
            raise InputError("submit-as", problem=problem, remedy="see `definitions` in docs/reference/schedulers.md")
        problem = f"{scheduler.name} does not support jobs as {text!r}"
        raise InputError("submit-as", problem=problem, remedy=f"use one of {', '.join(forms)}")
    return JobForm(SubmissionForm(text), *dialects[:1])


def _defined_dialects(start: ProgramStart, kinds: set[str]) -> Iterable[PodGroupApi]:
    """Yield the dialects of PodGroups that are defined; a scheduler's entry can restrict them to its own."""
    dialects = list(POD_GROUP_APIS.values())
    if start.pod_group:
        dialects = [_dialect(start)]
    yield from (dialect for dialect in dialects if _is_defined(dialect, start, kinds))


def _is_defined(dialect: PodGroupApi, start: ProgramStart, kinds: set[str]) -> bool:
    """Return whether a run has the PodGroups of a dialect; those of Kubernetes are served if a program needs them."""
    if dialect.is_native:
        return dialect.api_version in start.needs
    return f"podgroups.{dialect.group}" in kinds


def _dialect(start: ProgramStart) -> PodGroupApi:
    """Return the dialect of a scheduler's entry."""
    version, key = start.pod_group, start.pod_group_key
    if start.pod_group_label:
        return POD_GROUP_APIS.get(version, PodGroupApi(version))._replace(annotation="", label=start.pod_group_label)
    if version in POD_GROUP_APIS:
        return POD_GROUP_APIS[version].with_key(key) if key else POD_GROUP_APIS[version]
    # Which of them the scheduler reads is unknown, and it ignores the other one.
    unknown = PodGroupApi(version)
    return unknown._replace(annotation=key or unknown.annotation, label=key or unknown.annotation)


def admission_kinds(job_forms: JobForms) -> list[str]:
    """Return the storage names of the objects in which schedulers record the admission of jobs."""
    kinds = []
    for form, dialect in job_forms.values():
        if form in (SubmissionForm.POD_GROUP, SubmissionForm.VOLCANO_JOB) and not dialect.is_native:
            kinds.append(f"podgroups.{dialect.group}")
        elif form is SubmissionForm.KUEUE_JOB:
            kinds.append(JOBS)
    return list(dict.fromkeys(kinds))


class _JobDependencies:
    """Creates the PriorityClasses and queues to which jobs refer, unless they exist."""

    def __init__(self, world: World, client: Client, job_form: JobForm) -> None:
        self._store = world.store
        self._client = client
        self._form, self._dialect = job_form

    def __call__(self, job: Job, now: Instant) -> None:
        """Create the PriorityClass and the queue of a job."""
        if job.priority:
            self._ensure(_PRIORITY_CLASSES, priority_class_of(job.priority), now)
        if self._form is SubmissionForm.KUEUE_JOB:
            name = queue_name(job)
            key = Key(f"{NAMESPACE}/{name}")
            self._ensure(_LOCAL_QUEUES, local_queue_of(name, self._cluster_queue(name)), now, key)
        elif self._form in _FORMS_WITH_QUEUE and self._dialect.has_queues and queue_name(job) != DEFAULT_QUEUE:
            # The default queue exists, or the scheduler creates it.
            queue = queue_of(queue_name(job), self._dialect.api_version)
            self._ensure(f"queues.{self._dialect.group}", queue, now)

    def _cluster_queue(self, name: str) -> str:
        """Return the ClusterQueue of a LocalQueue: the one of the same name, or else the first one."""
        queues = self._store.entries(_CLUSTER_QUEUES)
        return name if Key(name) in queues else next(iter(queues), Key(name))

    def _ensure(self, storage: str, obj: KubeObject, now: Instant, key: Key | None = None) -> None:
        if self._store.get(storage, key or Key(obj["metadata"]["name"])) is None:
            self._client.create(storage, obj, now)


class DelegatingJobCreator(JobCreator):
    """Creates each job in the form of its scheduler."""

    def __init__(self, creators: Mapping[str, JobCreator]) -> None:
        self._creators = creators

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Submit a job."""
        self._creators[job.scheduler].create(job, now, past)

    def forget_execution(self, execution: JobExecution) -> None:
        """Forget an execution that will not continue."""
        self._creators[execution.job.scheduler].forget_execution(execution)

    def evict_remaining(self, execution: JobExecution, now: Instant) -> None:
        """Evict the remaining pods of an execution."""
        self._creators[execution.job.scheduler].evict_remaining(execution, now)

    def clean_up(self, job: Job, now: Instant, *, is_killed: bool) -> None:
        """Delete the objects of a job."""
        self._creators[job.scheduler].clean_up(job, now, is_killed=is_killed)


def job_creator_of(world: World, model: ResourceModel, client: BulkClient, job_forms: JobForms) -> JobCreator:
    """Return the creator of a run's jobs."""
    creators: dict[JobForm, JobCreator] = {}
    numbers = itertools.count()
    for job_form in job_forms.values():
        if job_form not in creators:
            creators[job_form] = _new_creator(world, model, client, job_form, numbers)
    if len(creators) > 1:
        return DelegatingJobCreator({name: creators[job_form] for name, job_form in job_forms.items()})
    return next(iter(creators.values()), _new_creator(world, model, client, JobForm(SubmissionForm.PODS), numbers))


def _new_creator(
    world: World,
    model: ResourceModel,
    client: BulkClient,
    job_form: JobForm,
    numbers: Iterator[int],
) -> JobCreator:
    prepare = _JobDependencies(world, client, job_form)
    match job_form.form:
        case SubmissionForm.PODS:
            return PodCreator(world, model, client, PodFactory(model, numbers), prepare)
        case SubmissionForm.POD_GROUP:
            return PodGroupCreator(world, model, client, GroupedPodFactory(model, job_form.dialect, numbers), prepare)
        case SubmissionForm.VOLCANO_JOB:
            storage, describe, restarts_whole = _VOLCANO_JOBS, volcano_job_of, True
        case _:
            is_kueue = job_form.form is SubmissionForm.KUEUE_JOB
            storage, restarts_whole = JOBS, False
            describe = functools.partial(indexed_job_of, kueue=is_kueue)
    return ObjectCreator(world, model, client, storage, describe, prepare, restarts_whole=restarts_whole)
