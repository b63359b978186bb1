"""Profiles as scripts: what a job waits for, one thing after the other.

A script yields waits (a time, a task that flows, a message) and returns an exit code. A sequence ends with the first
part whose code is not 0 (Batsim: execute_task). Processes of a usage trace are scripts of their own; each says that it
has come to its end by a message of four bytes to the first host of the job, and these arrive one after the other
(Batsim: usage_trace_replayer_process), which takes the network's time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

from batkube.execution.profiles.fluid_platform import FluidPlatform
from batkube.execution.profiles.task_shapes import StorageLookup, UnsupportedProfile, amount_of, shape_of
from batkube.fluid.tasks import Task
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.formats.batsim.message_patterns import next_profile
from batkube.workloads.formats.batsim.usage_traces import USAGE_TRACE, UsageStep, UsageTrace
from batkube.workloads.model import Composed, Delay, Job, Profile, RawProfile

_END_MESSAGE_BYTES = 4.0
#: How long sending a message takes unless the profile says (Batsim: profiles.cpp).
_SEND_TIME_S = 0.0000001
#: How often a message is looked for unless the profile says.
_POLL_TIME_S = 0.005


class CompletionQueue:
    """Messages between the scripts of one job: numbers of processes that are through."""

    def __init__(self) -> None:
        self.arrived: list[int] = []


class OutgoingMessage(NamedTuple):
    """Something that a job says to its scheduler; nobody waits for it to be heard."""

    message: object


class MessageChannel(Protocol):
    """Who brings messages between jobs and a scheduler."""

    def send(self, job: Job, message: object, now: Instant) -> None:
        """Take what a job says."""

    def inbox(self, job: Job) -> deque[str]:
        """Return what the scheduler has said to a job and it has not read, the earliest first."""

    def profile(self, job: Job, name: str) -> Profile:
        """Return the profile that a job goes on with. Raises RunFailed when there is none of the name."""


class ChildProcess(NamedTuple):
    """A script that goes on beside the one that begins it."""

    process: ProfileProcess


Wait = Duration | Task | CompletionQueue | ChildProcess | OutgoingMessage
ProfileProcess = Generator[Wait, None, int]
Traces = Callable[[RawProfile], UsageTrace]
"""Gives the usage trace that a profile names."""


class ProfileProcesses:
    """Makes the scripts of jobs."""

    def __init__(self, platform: FluidPlatform, storage: StorageLookup, traces: Traces) -> None:
        self._platform = platform
        self._storage = storage
        self._traces = traces
        #: Who brings messages, where a scheduler understands any.
        self.channel: MessageChannel | None = None

    def process(self, profile: Profile, hosts: Sequence[str], job: Job | None = None) -> ProfileProcess:
        """Yield what `profile` waits for with its rank i on `hosts[i]`; return its exit code. Raises UnsupportedProfile.

        `job` is whose work it is, where that is of a run.
        """
        match profile:
            case Delay():
                yield profile.duration
            case Composed():
                for _ in range(profile.repeat):
                    for part in profile.parts:
                        code = yield from self.process(part, hosts, job)
                        if code:
                            return code
            case RawProfile(kind=kind) if kind == USAGE_TRACE:
                yield from self._replay(self._traces(profile), hosts)
            case RawProfile(kind="send"):
                yield OutgoingMessage(profile.fields.get("msg"))
                yield seconds(amount_of({"sleeptime": _SEND_TIME_S} | profile.fields, "sleeptime"))
            case RawProfile(kind="recv"):
                return (yield from self._receive(profile, hosts, job)) or profile.ret
            case _:
                shape = shape_of(profile, hosts, self._storage)
                yield self._platform.new_task(profile.name, *shape)
        return profile.ret

    def _receive(self, profile: RawProfile, hosts: Sequence[str], job: Job | None) -> ProfileProcess:
        """Look for a message of the scheduler now and then, and go on with the profile that it chooses.

        With a profile for the case that none is there it is looked for once (Batsim: execute_task, RECV).
        """
        post = self.channel
        if post is None or job is None:
            raise UnsupportedProfile("waits for a message, and only schedulers of Batsim's protocol send any")
        fields, inbox = profile.fields, post.inbox(job)
        while not inbox and not fields.get("timeout"):
            yield seconds(amount_of({"polltime": _POLL_TIME_S} | fields, "polltime"))
        name = next_profile(fields, inbox.popleft()) if inbox else str(fields.get("timeout", ""))
        return (yield from self.process(post.profile(job, name), hosts, job)) if name else 0

    def _replay(self, trace: UsageTrace, hosts: Sequence[str]) -> Generator[Wait]:
        """Run the processes of a usage trace, in turn on the hosts, and gather their messages."""
        mail = CompletionQueue()
        homes = [hosts[rank % len(hosts)] for rank in range(len(trace))]
        for rank, steps in enumerate(trace):
            yield ChildProcess(self._usage(steps, homes[rank], rank, mail))
        for _ in trace:
            if not mail.arrived:
                yield mail
            home = homes[mail.arrived.pop(0)]
            yield self._platform.new_task("end", [home, hosts[0]], [0.0, 0.0], [0.0, _END_MESSAGE_BYTES, 0.0, 0.0])

    def _usage(self, steps: Sequence[UsageStep], host: str, rank: int, mail: CompletionQueue) -> ProfileProcess:
        cores = self._platform.host(host).cores
        for step in steps:
            # At least one core, or nothing could be computed (Batsim: usage_trace_replayer).
            busy = max(round_half_up(step.share * cores), 1)
            yield self._platform.new_task("usage", [host] * busy, [step.flops] * busy, ())
        mail.arrived.append(rank)
        return 0


def round_half_up(value: float) -> int:
    """Return the nearest whole number as C's `round` does; halves go away from 0."""
    return int(value + 0.5)
