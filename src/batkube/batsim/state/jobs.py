"""The jobs and profiles of a simulation, those of files and those that the scheduler registers."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from batkube.batsim.protocol.messages import JsonObject
from batkube.batsim.simgrid.actors import Actor
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.progress import JobProgress
from batkube.execution.profiles.task_shapes import SMPI
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Duration, Instant
from batkube.workloads.formats.batsim.documents import BatsimDocument, read_registered_job, read_registered_profile
from batkube.workloads.formats.batsim.usage_traces import USAGE_TRACE
from batkube.workloads.model import Job, Profile

_NO_TIME = Duration(0)


class JobState(enum.StrEnum):
    """Where a job is in its life, in Batsim's words."""

    NOT_SUBMITTED = "NOT_SUBMITTED"
    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    SUCCESS = "COMPLETED_SUCCESSFULLY"
    FAILED = "COMPLETED_FAILED"
    WALLTIME = "COMPLETED_WALLTIME_REACHED"
    KILLED = "COMPLETED_KILLED"
    REJECTED = "REJECTED"

    @property
    def is_final(self) -> bool:
        """Whether nothing more becomes of the job."""
        return self not in (JobState.NOT_SUBMITTED, JobState.SUBMITTED, JobState.RUNNING)


@dataclass(slots=True, eq=False)
class LiveJob:
    """A job and what has become of it."""

    job: Job
    #: As the scheduler is told of it.
    description: JsonObject
    profile_description: JsonObject
    state: JobState = JobState.NOT_SUBMITTED
    return_code: int = -1
    #: When it began; meaningful once it has.
    started: Instant = START
    length: Duration = _NO_TIME
    machines: int = 0
    #: Joules of its machines while it ran; None where energy is not counted.
    energy: float | None = None
    metadata: str = ""
    is_kill_requested: bool = False
    #: What the scheduler said to it and it has not read.
    inbox: deque[str] = field(default_factory=deque)
    #: On which of its machines the processes of its traces are; those of the first are those of all.
    ranks: Sequence[int] = ()
    #: Who carries it out, while it runs.
    actor: Actor | None = None
    #: What runs together with it, if anything does.
    io_profile: Profile | None = None
    progress: JobProgress | None = None

    @property
    def id(self) -> str:
        """Its identity on the wire, `workload!name`."""
        return self.job.key

    @property
    def ended(self) -> Instant:
        """When it was over."""
        return Instant(self.started + self.length)


class JobRegistry:
    """All jobs and profiles by workload."""

    def __init__(
        self, documents: Mapping[str, BatsimDocument], *, keeps_profiles: bool, workflows: Iterable[str] = ()
    ) -> None:
        """`keeps_profiles`: those of jobs that have ended can be used by new ones (--enable-profile-reuse).

        `workflows` are workloads whose jobs come to be while the simulation goes on.
        """
        self._keeps_profiles = keeps_profiles
        #: None for profiles that nobody uses any more.
        self._profiles: dict[str, dict[str, tuple[Profile, JsonObject] | None]] = {}
        self._jobs: dict[str, LiveJob] = {}
        #: Ids of jobs that have ended and are forgotten.
        self._forgotten: set[str] = set()
        for name, document in documents.items():
            used = _used_profiles(document)
            known = {one: (document.profiles[one], document.profile_descriptions[one]) for one in document.profiles}
            self._profiles[name] = {one: entry if one in used else None for one, entry in known.items()}
            for job, description in zip(document.workload.jobs, document.job_descriptions, strict=True):
                profile = document.profile_descriptions[str(description["profile"])]
                live = LiveJob(job, {**description, "id": job.key}, profile)
                self._jobs[job.key] = live
        for name in workflows:
            self._profiles[name] = {}

    def add(self, job: Job, description: JsonObject, profile_description: JsonObject) -> LiveJob:
        """Add a job of a workflow, which has a profile of its own."""
        self._profiles[job.workload][job.profile.name] = job.profile, profile_description
        live = self._jobs[job.key] = LiveJob(job, description, profile_description)
        return live

    def jobs_of(self, workload: str) -> list[LiveJob]:
        """Return the jobs of a workload's file in the order in which they are submitted."""
        return [live for live in self._jobs.values() if live.job.workload == workload]

    def profile_descriptions(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield for each workload its profiles in use, as files describe them."""
        for workload, profiles in self._profiles.items():
            yield workload, {name: entry[1] for name, entry in profiles.items() if entry is not None}

    def is_known(self, job_id: str) -> bool:
        """Return whether there is, or was, a job of this id."""
        self._check_id(job_id)
        return job_id in self._jobs or job_id in self._forgotten

    def job(self, job_id: str) -> LiveJob:
        """Return a job that has not ended, or has and was not told of yet."""
        self._check_id(job_id)
        live = self._jobs.get(job_id)
        if live is None:
            raise BatsimAbort(f"Cannot get job '{job_id}': it does not exist")
        return live

    def profile(self, workload: str, name: str) -> Profile | None:
        """Return a profile by its name, None if it is not there or was collected."""
        entry = self._profiles.get(workload, {}).get(name)
        return None if entry is None else entry[0]

    def register_profile(self, workload: str, name: str, description: JsonObject) -> Profile:
        """Add a profile of the scheduler's own; its workload is made if need be."""
        profiles = self._profiles.setdefault(workload, {})
        if name in profiles:
            raise BatsimAbort(
                f"Invalid new profile registration: profile '{name}' already existed in workload '{workload}'"
            )
        known = {one: entry[1] for one, entry in profiles.items() if entry is not None}
        if description.get("type") in (SMPI, USAGE_TRACE):
            raise BatsimAbort(
                "Trying to create a SMPI profile from another source than a file workload, which is not implemented at "
                f"the moment (profile '{name}')."
            )
        try:
            profile = read_registered_profile(name, description, known)
        except InputError as error:
            raise BatsimAbort(f"Invalid JSON profile received from the scheduler: {error}") from None
        profiles[name] = profile, description
        return profile

    def io_profile(self, live: LiveJob, name: str, description: JsonObject | None) -> Profile:
        """Return what is to run together with a job: a profile of its workload, or one that is added to it now."""
        workload = live.job.workload
        if description is not None:
            if name in self._profiles[workload]:
                raise BatsimAbort(f"The given profile name '{name}' already exists!")
            return self.register_profile(workload, name, description)
        profile = self.profile(workload, name)
        if profile is None:
            raise BatsimAbort(f"The given profile name '{name}' does not exists")
        return profile

    def register_job(self, job_id: str, description: JsonObject) -> LiveJob:
        """Add a job of the scheduler's own."""
        workload, own_name = self._check_id(job_id)
        if workload not in self._profiles:
            raise BatsimAbort(f"Internal error: Workload '{workload}' should exist.")
        if self.is_known(job_id):
            raise BatsimAbort(f"Cannot register new job '{job_id}', it already exists in the workload.")
        if "id" not in description:
            raise BatsimAbort("Invalid JSON job submitted by the scheduler: one job has no 'id' field")
        if str(description["id"]) not in (job_id, own_name):
            raise BatsimAbort(
                f"REGISTER_JOB: the 'id' of the job is '{description['id']}', and its 'job_id' '{job_id}'"
            )
        if "subtime" not in description:
            raise BatsimAbort(f"Invalid JSON job submitted by the scheduler: job '{job_id}' has no 'subtime' field")
        profiles = {one: entry for one, entry in self._profiles[workload].items() if entry is not None}
        name = description.get("profile")
        if name not in profiles:
            raise BatsimAbort(
                f"Invalid JSON job submitted by the scheduler: the profile {name} for job {job_id} does not exist"
            )
        try:
            job = read_registered_job(job_id, description, profiles[str(name)][0])
        except InputError as error:
            raise BatsimAbort(f"Invalid JSON job submitted by the scheduler: {error}") from None
        live = LiveJob(job, {**description, "id": job_id}, profiles[str(name)][1], state=JobState.SUBMITTED)
        self._jobs[job_id] = live
        return live

    def forget(self, job_id: str) -> None:
        """Let go of a job that the scheduler was told the end of, and of its profile unless those are kept."""
        live = self._jobs.pop(job_id)
        self._forgotten.add(job_id)
        if not self._keeps_profiles:
            self._collect(live.job.workload, live.job.profile)

    def _collect(self, workload: str, profile: Profile) -> None:
        """Drop a profile and those it is made of, whoever else names them (Batsim: Profiles::remove_profile)."""
        profiles = self._profiles[workload]
        if profiles.get(profile.name) is None:
            return
        for part in getattr(profile, "parts", ()):
            self._collect(workload, part)
        profiles[profile.name] = None

    def _check_id(self, job_id: str) -> tuple[str, str]:
        workload, mark, name = job_id.partition("!")
        if not mark or "!" in name:
            raise BatsimAbort(
                f"Invalid string job identifier '{job_id}': should be formatted as two '!'-separated parts, "
                "the second one being any string without '!'. Example: 'some_text!42'."
            )
        return workload, name


def _used_profiles(document: BatsimDocument) -> set[str]:
    """Return the profiles of jobs and those they are made of; others are collected before the simulation begins.

    Batsim counts references, and those of `recv` profiles to others are names and do not count.
    """
    used: set[str] = set()
    waiting = [job.profile for job in document.workload.jobs]
    while waiting:
        profile = waiting.pop()
        if profile.name not in used:
            used.add(profile.name)
            waiting += getattr(profile, "parts", ())
    return used
