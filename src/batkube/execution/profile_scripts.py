"""Profiles as scripts: what a job waits for, one thing after the other.

A script yields waits (a time, a task that flows, a message) and returns an exit code. A sequence ends with the first
part whose code is not 0 (Batsim: execute_task). Processes of a usage trace are scripts of their own; each says that it
has come to its end by a message of four bytes to the first host of the job, and these arrive one after the other
(Batsim: usage_trace_replayer_process), which takes the network's time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from batkube.execution.plant import Plant
from batkube.execution.shapes import NotModelled, Storage, amount_of, shape_of
from batkube.fluid.tasks import Task
from batkube.kernel.instants import Duration, seconds
from batkube.workloads.model import Composed, Delay, Foreign, Profile
from batkube.workloads.usage_traces import USAGE_TRACE, UsageStep, UsageTrace

_END_MESSAGE_BYTES = 4.0
#: How long sending a message takes unless the profile says (Batsim: profiles.cpp).
_SEND_TIME_S = 0.0000001


class Mail:
    """Messages between the scripts of one job: numbers of processes that are through."""

    def __init__(self) -> None:
        self.arrived: list[int] = []


class Process(NamedTuple):
    """A script that goes on beside the one that begins it."""

    script: Script


Wait = Duration | Task | Mail | Process
Script = Generator[Wait, None, int]
Traces = Callable[[Foreign], UsageTrace]
"""Gives the usage trace that a profile names."""


class Scripts:
    """Makes the scripts of jobs."""

    def __init__(self, plant: Plant, storage: Storage, traces: Traces) -> None:
        self._plant = plant
        self._storage = storage
        self._traces = traces

    def script(self, profile: Profile, hosts: Sequence[str]) -> Script:
        """Yield what `profile` waits for with its rank i on `hosts[i]`; return its exit code. Raises NotModelled."""
        match profile:
            case Delay():
                yield profile.duration
            case Composed():
                for _ in range(profile.repeat):
                    for part in profile.parts:
                        code = yield from self.script(part, hosts)
                        if code:
                            return code
            case Foreign(kind=kind) if kind == USAGE_TRACE:
                yield from self._replay(self._traces(profile), hosts)
            case Foreign(kind="send"):
                yield seconds(amount_of({"sleeptime": _SEND_TIME_S} | profile.fields, "sleeptime"))
            case Foreign(kind="recv"):
                raise NotModelled("waits for a message of a scheduler, which `batkube batsim` alone can bring it")
            case _:
                shape = shape_of(profile, hosts, self._storage)
                yield self._plant.task(profile.name, *shape)
        return profile.ret

    def _replay(self, trace: UsageTrace, hosts: Sequence[str]) -> Generator[Wait]:
        """Run the processes of a usage trace, in turn on the hosts, and gather their messages."""
        mail = Mail()
        homes = [hosts[rank % len(hosts)] for rank in range(len(trace))]
        for rank, steps in enumerate(trace):
            yield Process(self._usage(steps, homes[rank], rank, mail))
        for _ in trace:
            if not mail.arrived:
                yield mail
            home = homes[mail.arrived.pop(0)]
            yield self._plant.task("end", [home, hosts[0]], [0.0, 0.0], [0.0, _END_MESSAGE_BYTES, 0.0, 0.0])

    def _usage(self, steps: Sequence[UsageStep], host: str, rank: int, mail: Mail) -> Script:
        cores = self._plant.host(host).cores
        for step in steps:
            # At least one core, or nothing could be computed (Batsim: usage_trace_replayer).
            busy = max(round_half_up(step.share * cores), 1)
            yield self._plant.task("usage", [host] * busy, [step.flops] * busy, ())
        mail.arrived.append(rank)
        return 0


def round_half_up(value: float) -> int:
    """Return the nearest whole number as C's `round` does; halves go away from 0."""
    return int(value + 0.5)
