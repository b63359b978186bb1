"""The jobs and profiles of a simulation: those of workload files, and those that the scheduler registers.

Imitated: Batsim 4.2.1, src/jobs.cpp, src/profiles.cpp and src/workload.cpp.
"""

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
    """The state of a job, with Batsim's names (job_state_to_string in src/jobs.cpp)."""

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
        """Whether the job has ended or was rejected."""
        return self not in (JobState.NOT_SUBMITTED, JobState.SUBMITTED, JobState.RUNNING)


@dataclass(slots=True, eq=False)
class LiveJob:
    """A job and its state in the simulation."""

    job: Job
    #: The JSON that the scheduler receives.
    description: JsonObject
    profile_description: JsonObject
    state: JobState = JobState.NOT_SUBMITTED
    return_code: int = -1
    #: When it started, if it has.
    started: Instant = START
    length: Duration = _NO_TIME
    machines: int = 0
    #: The energy of its machines while it ran; None without energy accounting.
    joules: float | None = None
    metadata: str = ""
    is_kill_requested: bool = False
    #: Unread messages of the scheduler.
    inbox: deque[str] = field(default_factory=deque)
    #: The position of each trace process in its allocation; its first usage trace determines those of the others.
    ranks: Sequence[int] = ()
    #: The actor that executes it.
    actor: Actor | None = None
    #: The profile of its additional_io_job, if any.
    io_profile: Profile | None = None
    progress: JobProgress | None = None

    @property
    def id(self) -> str:
        """Its id in the protocol, `workload!name`."""
        return self.job.key

    @property
    def ended(self) -> Instant:
        """When it ended."""
        return Instant(self.started + self.length)


class JobRegistry:
    """All jobs and profiles by workload."""

    def __init__(
        self, documents: Mapping[str, BatsimDocument], *, keeps_profiles: bool, workflows: Iterable[str] = ()
    ) -> None:
        """`keeps_profiles`: new jobs may use profiles of jobs that have ended (--enable-profile-reuse).

        `workflows` are the names of workloads whose jobs are added during the simulation.
        """
        self._keeps_profiles = keeps_profiles
        #: By workload and name; None for a profile that was removed, whose name stays taken.
        self._profiles: dict[str, dict[str, tuple[Profile, JsonObject] | None]] = {}
        self._jobs: dict[str, LiveJob] = {}
        #: Ids of jobs that have ended and were deleted.
        self._deleted: set[str] = set()
        for name, document in documents.items():
            used = _used_profiles(document)
            self._profiles[name] = {
                profile: (document.profiles[profile], document.profile_descriptions[profile])
                if profile in used
                else None
                for profile in document.profiles
            }
            for job, description in zip(document.workload.jobs, document.job_descriptions, strict=True):
                profile_description = document.profile_descriptions[str(description["profile"])]
                self._jobs[job.key] = LiveJob(job, {**description, "id": job.key}, profile_description)
        for name in workflows:
            self._profiles[name] = {}

    def add(self, job: Job, description: JsonObject, profile_description: JsonObject) -> LiveJob:
        """Add a job of a workflow, with its profile."""
        self._profiles[job.workload][job.profile.name] = job.profile, profile_description
        live = self._jobs[job.key] = LiveJob(job, description, profile_description)
        return live

    def jobs_of(self, workload: str) -> list[LiveJob]:
        """Return the jobs of a workload file, in the order of submission."""
        return [live for live in self._jobs.values() if live.job.workload == workload]

    def profile_descriptions(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield for each workload the descriptions of its profiles that are in use."""
        for workload, profiles in self._profiles.items():
            yield workload, {name: entry[1] for name, entry in profiles.items() if entry is not None}

    def is_registered(self, job_id: str) -> bool:
        """Return whether a job of this id exists, or existed."""
        self._check_id(job_id)
        return job_id in self._jobs or job_id in self._deleted

    def job(self, job_id: str) -> LiveJob:
        """Return a job; jobs are deleted once their end has been reported."""
        self._check_id(job_id)
        live = self._jobs.get(job_id)
        if live is None:
            raise BatsimAbort(f"Cannot get job '{job_id}': it does not exist")
        return live

    def profile(self, workload: str, name: str) -> Profile | None:
        """Return a profile, or None if it does not exist or was removed."""
        entry = self._profiles.get(workload, {}).get(name)
        return None if entry is None else entry[0]

    def register_profile(self, workload: str, name: str, description: JsonObject) -> Profile:
        """Add a profile that the scheduler registers; create its workload if necessary."""
        profiles = self._profiles.setdefault(workload, {})
        if name in profiles:
            raise BatsimAbort(
                f"Invalid new profile registration: profile '{name}' already existed in workload '{workload}'"
            )
        descriptions = {other: entry[1] for other, entry in profiles.items() if entry is not None}
        if description.get("type") in (SMPI, USAGE_TRACE):
            raise BatsimAbort(
                "Trying to create a SMPI profile from another source than a file workload, which is not implemented at "
                f"the moment (profile '{name}')."
            )
        try:
            profile = read_registered_profile(name, description, descriptions)
        except InputError as error:
            raise BatsimAbort(f"Invalid JSON profile received from the scheduler: {error}") from None
        profiles[name] = profile, description
        return profile

    def io_profile(self, live: LiveJob, name: str, description: JsonObject | None) -> Profile:
        """Return the profile of an additional_io_job: an existing one, or a new one if it has a description."""
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
        """Add a job that the scheduler registers."""
        workload, job_name = self._check_id(job_id)
        if workload not in self._profiles:
            raise BatsimAbort(f"Internal error: Workload '{workload}' should exist.")
        if self.is_registered(job_id):
            raise BatsimAbort(f"Cannot register new job '{job_id}', it already exists in the workload.")
        if "id" not in description:
            raise BatsimAbort("Invalid JSON job submitted by the scheduler: one job has no 'id' field")
        if str(description["id"]) not in (job_id, job_name):
            raise BatsimAbort(
                f"REGISTER_JOB: the 'id' of the job is '{description['id']}', and its 'job_id' '{job_id}'"
            )
        if "subtime" not in description:
            raise BatsimAbort(f"Invalid JSON job submitted by the scheduler: job '{job_id}' has no 'subtime' field")
        name = description.get("profile")
        entry = self._profiles[workload].get(name) if isinstance(name, str) else None
        if entry is None:
            raise BatsimAbort(
                f"Invalid JSON job submitted by the scheduler: the profile {name} for job {job_id} does not exist"
            )
        try:
            job = read_registered_job(job_id, description, entry[0])
        except InputError as error:
            raise BatsimAbort(f"Invalid JSON job submitted by the scheduler: {error}") from None
        live = self._jobs[job_id] = LiveJob(job, {**description, "id": job_id}, entry[1], state=JobState.SUBMITTED)
        return live

    def delete(self, job_id: str) -> None:
        """Delete a job whose end was reported, and its profile unless profiles are kept (Batsim: delete_jobs)."""
        live = self._jobs.pop(job_id)
        self._deleted.add(job_id)
        if not self._keeps_profiles:
            self._remove_profile(live.job.workload, live.job.profile)

    def _remove_profile(self, workload: str, profile: Profile) -> None:
        """Remove a profile and its parts, even if others use them (Batsim: Profiles::remove_profile)."""
        profiles = self._profiles[workload]
        if profiles.get(profile.name) is None:
            return
        for part in getattr(profile, "parts", ()):
            self._remove_profile(workload, part)
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
    """Return the profiles that jobs use, directly or as parts; Batsim removes the others before the simulation.

    It counts references (Batsim: Profiles::remove_unreferenced_profiles); the profiles that `recv` names are not
    references.
    """
    used: set[str] = set()
    pending = [job.profile for job in document.workload.jobs]
    while pending:
        profile = pending.pop()
        if profile.name not in used:
            used.add(profile.name)
            pending += getattr(profile, "parts", ())
    return used
