"""Jobs, profiles and workloads in Batsim's sense, independent of the file format.

All classes are frozen. A trace of 200,000 jobs is in memory as a whole, so jobs are msgspec structs that the garbage
collector does not track (they contain no cycles), and jobs share equal profiles and requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, human_duration
from batkube.kernel.quantities import format_amount
from batkube.workloads.history import Step

Requests = tuple[tuple[str, int], ...]
"""The requests of one pod of a job: (resource name, amount), sorted by name. cpu is in millicores, every other resource
in whole units (memory: bytes), as in kube-scheduler."""


class Profile(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The behaviour of a running job. `ret` is its exit code; if it is not 0, the job fails when it ends."""

    name: str
    ret: int = 0


class Delay(Profile, frozen=True, gc=False, kw_only=True):
    """Takes a fixed time on any machine (Batsim: `delay`)."""

    duration: Duration


class Parallel(Profile, frozen=True, gc=False, kw_only=True):
    """One task per machine: flops per machine, and a matrix of bytes from row to column (Batsim: `parallel`)."""

    cpu_flops: tuple[float, ...]
    com_bytes: tuple[float, ...]


class ParallelHomogeneous(Profile, frozen=True, gc=False, kw_only=True):
    """The same flops on each machine, the same bytes between each pair (Batsim: `parallel_homogeneous`)."""

    cpu_flops: float
    com_bytes: float


class ParallelHomogeneousTotal(Profile, frozen=True, gc=False, kw_only=True):
    """Like `ParallelHomogeneous`, with totals over all machines (Batsim: `parallel_homogeneous_total`)."""

    cpu_flops: float
    com_bytes: float


class Composed(Profile, frozen=True, gc=False, kw_only=True):
    """A sequence of other profiles, executed `repeat` times (Batsim: `composed`)."""

    parts: tuple[Profile, ...]
    repeat: int = 1


def leaf_profiles(profile: Profile) -> Iterator[Profile]:
    """Yield the leaves of a composed profile, or the profile itself if it is not composed."""
    if isinstance(profile, Composed):
        for part in profile.parts:
            yield from leaf_profiles(part)
    else:
        yield profile


class RawProfile(Profile, frozen=True, gc=False, kw_only=True):
    """A profile that is kept as read: PFS transfers, data staging, SMPI, usage traces and messages.

    `kind` is Batsim's type name, and `fields` are the profile's JSON fields, so that conversions lose nothing.
    """

    kind: str
    fields: dict[str, object]


class GangTerms(NamedTuple):
    """The fields of a job's PodGroup (PodGroupSpec of Volcano, kube-batch and the coscheduling plugin)."""

    #: `minMember`: the number of pods that are scheduled together or not at all; 0 means all pods.
    min_member: int = 0
    #: `minResources`: the total that must be free before a scheduler considers the job; empty for no minimum.
    min_resources: Requests = ()


WHOLE_GANG = GangTerms()
"""The default: all pods together, without a minimum of resources."""


class Job(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One job. Its identity is `workload!name`, as on Batsim's wire."""

    workload: str
    name: str
    submit: Instant
    #: Batsim's `res`: machines in the whole-machine model, pods of the gang when packing by requests.
    size: int
    profile: Profile
    #: The time limit, after which the job is killed; None for no limit.
    walltime: Duration | None = None
    #: Per pod; empty if the workload has no requests.
    requests: Requests = ()
    user: str = ""
    #: Larger is more important, as a Kubernetes PriorityClass value.
    priority: int = 0
    #: The name of the requested scheduler; empty for the default scheduler of the run.
    scheduler: str = ""
    #: The container image, for pulls; empty for an image that all such jobs share.
    image: str = ""
    #: The queue to which it is submitted; empty for the scheduler's default queue.
    queue: str = ""
    #: The partition of the machine on which it ran in a trace. Policies can read it; real schedulers do not see it.
    partition: str = ""
    #: For schedulers with PodGroups.
    gang: GangTerms = WHOLE_GANG

    @property
    def key(self) -> str:
        """The identity `workload!name`."""
        return f"{self.workload}!{self.name}"

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for jobs that fit on the same nodes: if one does not fit, none does."""
        return self.size, self.requests

    def __str__(self) -> str:
        limit = "no walltime" if self.walltime is None else f"walltime {human_duration(self.walltime)}"
        requests = "".join(f", {name} {format_amount(name, amount)}" for name, amount in self.requests)
        return f"job {self.key}: size {self.size}, {limit}{requests}"


class ObjectManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes object of a workload, to be applied at its submission time."""

    at: Instant
    #: The object's own fields, as JSON.
    fields: dict[str, Any]
    #: The name of its workload, as in a job's identity.
    workload: str
    #: The file, and the position in it, such as `document 3 (Deployment web)`.
    source: str
    place: str

    @property
    def kind(self) -> str:
        """The object's kind, such as Deployment."""
        return str(self.fields["kind"])


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """The metadata of a trace, which is kept when the trace is written again (SWF: the header)."""

    #: The date of instant 0, in seconds since 1970; None if unknown, or if jobs do not arrive as recorded.
    unix_start_s: int | None = None
    #: The names of queues and partitions, by their numbers in the trace.
    queue_names: Mapping[str, str] = field(default_factory=dict)
    partition_names: Mapping[str, str] = field(default_factory=dict)
    #: Labels and texts: computer, installation, time zone, acknowledgement, …
    comments: tuple[tuple[str, str], ...] = ()
    #: The commands that made the file, oldest first.
    history: tuple[Step, ...] = ()

    def shifted(self, by: int) -> TraceHeader:
        """Return the header for jobs whose instant 0 is `by` nanoseconds later, in whole seconds."""
        if self.unix_start_s is None:
            return self
        return replace(self, unix_start_s=self.unix_start_s + by // NANOSECONDS_PER_SECOND)

    def with_step(self, step: Step) -> TraceHeader:
        """Return the header of a file that `step` makes from this one."""
        return replace(self, history=(*self.history, step))

    def without_start_time(self) -> TraceHeader:
        """Return the header for jobs that do not arrive as recorded and so have no date."""
        return replace(self, unix_start_s=None)


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of submission, and objects in order of application."""

    name: str
    #: A path, or the command of a generator.
    source: str
    #: Ascending by `submit`; ties are in the order that the format prescribes (Batsim: by id, SWF: by line).
    jobs: Sequence[Job]
    #: The machine size in the file (Batsim: `nb_res`, SWF: MaxProcs); None if it is absent.
    size_machines: int | None = None
    #: What the reader left out or assumed, and how often.
    notes: tuple[tuple[FidelityNote, int], ...] = field(default=())
    #: Ascending by `at`; ties are in the order of the file, except that CRDs and Namespaces come first.
    objects: Sequence[ObjectManifest] = ()
    header: TraceHeader = TraceHeader()
