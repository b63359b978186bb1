"""The fluid model of a run: creates fluid platforms and profile runners, and computes isolated run times.

A platform that is not a SimGrid file has no network, but its machines can compute if they have a speed. Each profile
runner has a `FluidPlatform` of its own, which contains its tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from batkube.execution.profiles.fluid_platform import FluidPlatform
from batkube.execution.profiles.processes import ProfileProcesses
from batkube.execution.profiles.runner import ProfileRunner
from batkube.execution.profiles.task_shapes import UnsupportedProfile, storage_lookup
from batkube.fluid.flow import Flow
from batkube.kernel.agenda import Agenda
from batkube.kernel.instants import START, Duration, Instant
from batkube.platforms.model import Platform
from batkube.platforms.network import Network
from batkube.platforms.network_lookup import network_of
from batkube.workloads.formats.batsim.profiles import batsim_type_of
from batkube.workloads.formats.batsim.usage_traces import UsageTraces
from batkube.workloads.model import Delay, Job, Profile, RawProfile
from batkube.workloads.run_times import RunTime, run_time_of


class FluidModel:
    """Creates fluid platforms, and runners of profiles on them."""

    def __init__(self, platform: Platform, workloads: Mapping[str, Path]) -> None:
        """`workloads` are the workload files by name; paths of usage traces are relative to them."""
        self._platform = platform
        self._folders = {name: path.parent for name, path in workloads.items()}
        self.network: Network = network_of(platform)
        self._traces = UsageTraces()
        self._run_times: dict[tuple[int, int], RunTime] = {}
        #: Whether the run's scheduler sends messages; the time that a job waits for one is then unknown.
        self.has_messages = False

    def new_platform(self) -> FluidPlatform:
        """Return the platform without tasks."""
        return FluidPlatform(self.network, Flow())

    def new_runner(self, agenda: Agenda, platform: FluidPlatform) -> ProfileRunner:
        """Return a profile runner on the platform."""
        return ProfileRunner(
            agenda, platform.flow, ProfileProcesses(platform, storage_lookup(self.network.storages), self._traces.trace)
        )

    def isolated_run_time(self, job: Job) -> RunTime:
        """Return the run time of a job alone on the first machines of the platform. Raise UnsupportedProfile."""
        case = id(job.profile), job.size
        if case not in self._run_times:
            self._traces.load(job.profile, self._folders[job.workload])
            machines = self._platform.machines
            hosts = [machines[rank % len(machines)].name for rank in range(job.size)]
            self._run_times[case] = run_time_of(job.profile, lambda simple: self._isolated_duration(simple, hosts))
        return self._run_times[case]

    def _isolated_duration(self, profile: Profile, hosts: Sequence[str]) -> Duration:
        """Return the duration of a profile that is not composed of others."""
        if isinstance(profile, Delay):
            return profile.duration
        if self.has_messages and isinstance(profile, RawProfile) and profile.kind == "recv":
            return Duration(0)
        # Any job may get any machine, including those added during the run.
        machines = self._platform.machines
        unknown = [machine.name for machine in machines if machine.name not in self.network.hosts]
        if unknown:
            raise UnsupportedProfile(
                f"is of type {batsim_type_of(profile)!r}, and the platform gives no speed for machine {unknown[0]!r}"
            )
        agenda = Agenda()
        ends: list[Instant] = []
        self.new_runner(agenda, self.new_platform()).start(
            profile.name, profile, hosts, lambda code, at: ends.append(at), START
        )
        while not ends:
            appointment = agenda.pop_next()
            if appointment is None:
                raise UnsupportedProfile("would never end: a host or a link that it needs has no capacity")
            appointment.action(appointment.at)
        return Duration(ends[0] - START)
