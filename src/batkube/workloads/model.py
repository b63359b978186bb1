"""Jobs, profiles and workloads, in Batsim's sense, whatever file they came from.

All of it is frozen. A trace of 200,000 jobs is held whole, so jobs are msgspec structs outside the garbage
collector's care (they hold no cycles), and what many jobs have in common (profiles, requests) is shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, human_duration
from batkube.kernel.quantities import format_amount

Requests = tuple[tuple[str, int], ...]
"""What one pod of a job asks of its node: (resource name, amount), sorted by name. cpu counts millicores, every
other resource whole units (memory: bytes), as kube-scheduler counts them."""


class Profile(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a job does once it runs. `ret` is its exit code: not 0 means that the job fails when it ends."""

    name: str
    ret: int = 0


class Delay(Profile, frozen=True, gc=False, kw_only=True):
    """Takes a fixed time on any machine (Batsim: `delay`)."""

    duration: Duration


class Parallel(Profile, frozen=True, gc=False, kw_only=True):
    """A task per machine: flops each computes, bytes row sends to column (Batsim: `parallel`)."""

    cpu_flops: tuple[float, ...]
    com_bytes: tuple[float, ...]


class ParallelHomogeneous(Profile, frozen=True, gc=False, kw_only=True):
    """The same flops on each machine, the same bytes between each pair (Batsim: `parallel_homogeneous`)."""

    cpu_flops: float
    com_bytes: float


class ParallelHomogeneousTotal(Profile, frozen=True, gc=False, kw_only=True):
    """As `ParallelHomogeneous`, with totals that the machines share (Batsim: `parallel_homogeneous_total`)."""

    cpu_flops: float
    com_bytes: float


class Composed(Profile, frozen=True, gc=False, kw_only=True):
    """Other profiles one after the other, all of it `repeat` times (Batsim: `composed`)."""

    parts: tuple[Profile, ...]
    repeat: int = 1


def leaf_profiles(profile: Profile) -> Iterator[Profile]:
    """Yield the profiles that one is composed of, each that is not composed itself; or itself if it is not."""
    if isinstance(profile, Composed):
        for part in profile.parts:
            yield from leaf_profiles(part)
    else:
        yield profile


class RawProfile(Profile, frozen=True, gc=False, kw_only=True):
    """A profile that is read and kept but cannot be run yet: PFS transfers, data staging, SMPI and usage traces.

    `kind` is Batsim's type name and `fields` what the file says of it, so that a conversion loses nothing.
    """

    kind: str
    fields: dict[str, object]


class GangTerms(NamedTuple):
    """What a job's PodGroup says beyond the number of its pods (Volcano, kube-batch, coscheduling: PodGroupSpec)."""

    #: `minMember`: so many pods get their nodes together or not at all; 0 means all of them.
    min_member: int = 0
    #: `minResources`: so much must be free, all pods together, before a scheduler looks at the job; empty for nothing.
    min_resources: Requests = ()


WHOLE_GANG = GangTerms()
"""The terms of a job that says nothing of them."""


class Job(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One job. Its identity is `workload!name`, as on Batsim's wire."""

    workload: str
    name: str
    submit: Instant
    #: Batsim's `res`: machines in the whole-machine model, pods of the gang when packing by requests.
    size: int
    profile: Profile
    #: After this long the job is killed; None when it may run for ever.
    walltime: Duration | None = None
    #: Per pod; empty when the workload says nothing of cpu or memory.
    requests: Requests = ()
    user: str = ""
    #: Larger is more important, as a Kubernetes PriorityClass value.
    priority: int = 0
    #: The scheduler asked for by name; empty means the run's default one.
    scheduler: str = ""
    #: The container image, which decides what has to be pulled; empty means one image that all such jobs share.
    image: str = ""
    #: The queue it was submitted to; empty for the scheduler's default one.
    queue: str = ""
    #: The part of the machine it ran on, as a trace has it. Kept, and nothing that a scheduler is told of.
    partition: str = ""
    #: What its PodGroup says, with schedulers that have such.
    gang: GangTerms = WHOLE_GANG

    @property
    def key(self) -> str:
        """The identity `workload!name`."""
        return f"{self.workload}!{self.name}"

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for jobs that fit the same places: where one does not fit, the others need not be tried."""
        return self.size, self.requests

    def __str__(self) -> str:
        limit = "no walltime" if self.walltime is None else f"walltime {human_duration(self.walltime)}"
        asks = "".join(f", {name} {format_amount(name, amount)}" for name, amount in self.requests)
        return f"job {self.key}: size {self.size}, {limit}{asks}"


class ObjectManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes object as somebody wrote it down, to be applied at its time."""

    at: Instant
    #: The object's own fields, as JSON.
    fields: dict[str, Any]
    #: The workload it belongs to, as in a job's identity.
    workload: str
    #: The file, and where in it: `document 3 (Deployment web)`.
    source: str
    place: str

    @property
    def kind(self) -> str:
        """What it is an object of."""
        return str(self.fields["kind"])


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What a trace says beside its jobs, and has a place in when it is written again (SWF: the header)."""

    #: When the instant 0 was, in seconds since 1970; None when nobody says, or when jobs do not arrive as recorded.
    unix_start_s: int | None = None
    #: What is meant by the numbers that stand for queues and partitions.
    queue_names: Mapping[str, str] = field(default_factory=dict)
    partition_names: Mapping[str, str] = field(default_factory=dict)
    #: Whose machine it was, in which time zone, whom to thank: labels and texts.
    comments: tuple[tuple[str, str], ...] = ()

    def shifted(self, by: int) -> TraceHeader:
        """Return the header for jobs whose instant 0 is so many nanoseconds later; it counts whole seconds."""
        if self.unix_start_s is None:
            return self
        return replace(self, unix_start_s=self.unix_start_s + by // NANOSECONDS_PER_SECOND)

    def without_start_time(self) -> TraceHeader:
        """Return the header for jobs that arrive at other times than recorded, so that no date is theirs."""
        return replace(self, unix_start_s=None)


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in the order of their submission, and objects in the order in which they are applied."""

    name: str
    #: Where it came from: a path, or the generator's command.
    source: str
    #: Ascending by `submit`; ties are in the order the format prescribes (Batsim: by id, SWF: by line).
    jobs: Sequence[Job]
    #: The machine size the file states (Batsim's `nb_res`, SWF's MaxProcs); None when it does not.
    size_machines: int | None = None
    #: What reading it had to leave out or assume, each with how often.
    notes: tuple[tuple[FidelityNote, int], ...] = field(default=())
    #: Ascending by `at`; ties are in the order of the file, what defines other objects first.
    objects: Sequence[ObjectManifest] = ()
    #: What the file says beside the jobs.
    header: TraceHeader = TraceHeader()
