"""Profiles as simulation processes, in the style of SimPy: generators that yield what the job waits for.

A process yields waits (a duration, a fluid task, a message) and returns an exit code. A sequence ends with the first
part whose code is not 0 (Batsim: execute_task). Each process of a usage trace is a child process. It reports its end by
a message of four bytes to the first host of the job; these messages are transferred one after the other over the
network (Batsim: usage_trace_replayer_process).
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
#: The default time to send a message (Batsim: profiles.cpp).
_SEND_TIME_S = 0.0000001
#: The default interval at which a job polls for a message.
_POLL_TIME_S = 0.005


class CompletionQueue:
    """The queue of the processes of one job that have ended, by number."""

    def __init__(self) -> None:
        self.arrived: list[int] = []


class OutgoingMessage(NamedTuple):
    """A message from a job to its scheduler; the job does not wait for its receipt."""

    message: object


class MessageChannel(Protocol):
    """Transfers messages between jobs and a scheduler."""

    def send(self, job: Job, message: object, now: Instant) -> None:
        """Send a job's message to the scheduler."""

    def inbox(self, job: Job) -> deque[str]:
        """Return the queue of a job's unread messages from the scheduler, oldest first."""

    def profile(self, job: Job, name: str) -> Profile:
        """Return the profile with which a job continues. Raise RunFailed if it does not exist."""


class ChildProcess(NamedTuple):
    """A process that runs concurrently with its parent."""

    process: ProfileProcess


Wait = Duration | Task | CompletionQueue | ChildProcess | OutgoingMessage
ProfileProcess = Generator[Wait, None, int]
Traces = Callable[[RawProfile], UsageTrace]
"""Returns the usage trace that a profile names."""


class ProfileProcesses:
    """Creates the processes of jobs."""

    def __init__(self, platform: FluidPlatform, storage: StorageLookup, traces: Traces) -> None:
        self._platform = platform
        self._storage = storage
        self._traces = traces
        #: The message channel, if the scheduler supports messages.
        self.channel: MessageChannel | None = None

    def process(self, profile: Profile, hosts: Sequence[str], job: Job | None = None) -> ProfileProcess:
        """Run `profile` with rank i on `hosts[i]`: yield its waits and return its exit code. Raise UnsupportedProfile.

        `job` is the job of the profile, in a run.
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
        """Poll for a message of the scheduler, and continue with the profile that it selects.

        A profile with a `timeout` branch polls only once (Batsim: execute_task, RECV).
        """
        channel = self.channel
        if channel is None or job is None:
            raise UnsupportedProfile("waits for a message, and only schedulers of Batsim's protocol send any")
        fields, inbox = profile.fields, channel.inbox(job)
        while not inbox and not fields.get("timeout"):
            yield seconds(amount_of({"polltime": _POLL_TIME_S} | fields, "polltime"))
        name = next_profile(fields, inbox.popleft()) if inbox else str(fields.get("timeout", ""))
        return (yield from self.process(channel.profile(job, name), hosts, job)) if name else 0

    def _replay(self, trace: UsageTrace, hosts: Sequence[str]) -> Generator[Wait]:
        """Run the processes of a usage trace, distributed round-robin over the hosts, and wait for their messages."""
        completions = CompletionQueue()
        rank_hosts = [hosts[rank % len(hosts)] for rank in range(len(trace))]
        for rank, steps in enumerate(trace):
            yield ChildProcess(self._usage(steps, rank_hosts[rank], rank, completions))
        for _ in trace:
            if not completions.arrived:
                yield completions
            rank_host = rank_hosts[completions.arrived.pop(0)]
            yield self._platform.new_task("end", [rank_host, hosts[0]], [0.0, 0.0], [0.0, _END_MESSAGE_BYTES, 0.0, 0.0])

    def _usage(self, steps: Sequence[UsageStep], host: str, rank: int, completions: CompletionQueue) -> ProfileProcess:
        cores = self._platform.host(host).cores
        for step in steps:
            # At least one core, since the task could not compute otherwise (Batsim: usage_trace_replayer).
            busy = max(round_half_up(step.share * cores), 1)
            yield self._platform.new_task("usage", [host] * busy, [step.flops] * busy, ())
        completions.arrived.append(rank)
        return 0


def round_half_up(value: float) -> int:
    """Round a non-negative number to the nearest integer, halves up, as C's `round` does."""
    return int(value + 0.5)
