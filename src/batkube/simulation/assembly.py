"""Assemble the parts of one run. This is the only module that knows all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from batkube.cluster.jobs.outcomes import Outcome
from batkube.cluster.mapping import ResourceModel, kube_name
from batkube.cluster.nodes.resource_usage import ResourceUsage
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import Store
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.components.cluster import KubeletOptions, start_cluster, start_scheduler
from batkube.components.nodes import NodeCreator
from batkube.execution.jobs.admissions import JobAdmissions
from batkube.execution.jobs.submission import Submission
from batkube.execution.jobs.workload_jobs import WorkloadJobs
from batkube.execution.latencies.delays import Delays
from batkube.execution.nodes.allocations import NodeAllocations, OvercommittedAllocations
from batkube.execution.nodes.cordon_log import CordonLog
from batkube.execution.nodes.leases import NodeLeases
from batkube.execution.profiles.run_times import run_time_on
from batkube.kernel.clock import Clock
from batkube.kernel.instants import START, Duration, Instant
from batkube.kernel.journal import Journal
from batkube.kernel.quantities import MACHINE
from batkube.kernel.streams import Streams
from batkube.outputs.writers.streaming_csv import MachineStatesWriter, PodsWriter
from batkube.pacing.decision_stats import DecisionStats
from batkube.policies.runtime.policy_scheduler import PolicyChoice
from batkube.programs.program import WARM_UP, NoPrograms, ProgramSetup, ProgramTimeDriver, RunServer
from batkube.scenarios.scenario import CONTROLLER_MANAGER, OnDeadlock
from batkube.simulation.parts.batsim_engine import (
    NO_PEER_CONNECTION,
    EngineSetup,
    PeerConnection,
    planned_run_time,
    start_engine,
)
from batkube.simulation.parts.completion import CompletionTracker
from batkube.simulation.parts.energy import EnergyParts, create_energy_parts
from batkube.simulation.parts.machine_states import record_machine_states
from batkube.simulation.parts.peer_connection import connect_peer, outcome_listener
from batkube.simulation.preparation.input_notes import note_inputs
from batkube.simulation.preparation.inputs import Inputs, served_api
from batkube.simulation.preparation.job_forms import admission_kinds, job_creator_of
from batkube.simulation.preparation.timeline import start_timeline
from batkube.timing.loop import Loop
from batkube.timing.time_rules import TimeMode
from batkube.workloads.container_rules.rules import ContainerRules
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.components.controllers import ControllerContext
    from batkube.execution.energy.log import EnergyLog
    from batkube.execution.jobs.gang_monitor import GangMonitor
    from batkube.execution.nodes.device_log import DeviceLog
    from batkube.policies.runtime.policy_scheduler import PolicyScheduler
    from batkube.programs.observation.conflicts import SchedulerConflicts
    from batkube.programs.observation.observer import ProgramObserver
    from batkube.simulation.parts.auditor import RunAuditor


#: kube-scheduler evicts only to make room for pods of a higher priority, and controllers only from nodes that fail.
_NON_EVICTING_PROGRAMS = ("kube-scheduler", CONTROLLER_MANAGER)


@dataclass(frozen=True, slots=True)
class Simulation:
    """One assembled run: its world, its time driver and its outputs."""

    world: World
    loop: Loop
    #: The external programs, if any, and the time driver.
    programs: ProgramTimeDriver
    #: The outcomes of the workloads' jobs.
    outcomes: list[Outcome]
    machine_states: MachineStatesWriter
    #: The resources that pods used over time.
    usage: ResourceUsage
    completion: CompletionTracker
    rules: ContainerRules
    #: Detects jobs that are only partly started; None if no program places pods individually.
    gangs: GangMonitor | None
    #: When job-level schedulers admitted the jobs.
    admissions: JobAdmissions
    #: Kinds that programs requested although they are not defined.
    unknown_kinds: Sequence[str] = ()
    #: Conflicts between several schedulers.
    conflicts: SchedulerConflicts | None = None
    #: The allocations of devices; None if there can be no claims.
    devices: DeviceLog | None = None
    #: Compares the caches of schedulers with the cluster.
    auditor: RunAuditor | None = None
    #: The energy of machines and jobs; None without --energy.
    energy: EnergyLog | None = None
    #: The connection to a scheduler that uses Batsim's protocol, or to a Batsim.
    peer_connection: PeerConnection = NO_PEER_CONNECTION

    @property
    def all_outcomes(self) -> list[Outcome]:
        """The outcomes of the workloads' jobs, followed by those of Job objects."""
        records = self.completion.records
        return self.outcomes if records is None else self.outcomes + records.outcomes


def assemble(
    inputs: Inputs, journal: Journal, reasons: Journal, pods_file: TextIO, states_file: TextIO, scheduler_folder: Path
) -> Simulation:
    """Wire one run: workload → store → scheduler → kubelets → outputs.

    Subscribers are notified in the order in which they subscribed, so the order of these paragraphs affects results.
    Nodes are created after their subscribers, and jobs arrive after everything else is in place.
    """
    # The world and its output files.
    scenario, machines, model = inputs.scenario, inputs.platform.machines, inputs.model
    world, outcomes = _create_world(inputs, journal, reasons), list[Outcome]()
    loop, rules = Loop(world), ContainerRules(inputs.rules, world.streams)
    states = MachineStatesWriter(states_file, len(machines))
    observer = _create_observer(world) if inputs.external_programs else None
    pods = PodsWriter(pods_file, world.machines.names, None if observer is None else observer.pop_attempts)
    allocations = NodeAllocations(world.store) if scenario.time.enforces_admission else OvercommittedAllocations(world)
    server = _create_server(world, inputs, rules)
    # Jobs: their arrival, their objects and their outcomes.
    access = Access.of_world(world, None if server is None else server.api.client)
    creator = job_creator_of(world, model, access.client("batkube"), inputs.job_forms)
    delays, arrivals = Delays(inputs.latencies, world.streams), _arrivals(inputs, world)
    engine = start_engine(world, inputs, arrivals, scheduler_folder.parent / "engine")
    submission = Submission(world, arrivals if engine.batsim is None else (), creator, delays)
    power = create_energy_parts(world, inputs, access)
    on_outcome = outcome_listener(inputs, outcomes, engine)
    jobs = _create_workload_jobs(world, inputs, access, submission, on_outcome, pods)
    # The cluster: kubelets, controllers, a policy's scheduler, and then its nodes.
    nodes_may_change = bool(inputs.timeline or inputs.external_programs)
    on_busy = record_machine_states(world, allocations, states, power.switches, nodes_may_change=nodes_may_change)
    work = engine.batsim or power.execution_work
    start_cluster(
        world,
        access,
        KubeletOptions(allocations, work, jobs.handle_node_loss, delays, rules, on_busy),
        _controller_context(world, inputs, server, rules),
        has_lifecycle=inputs.has_node_lifecycle,
        watches_nodes=not inputs.has_leases,
        node_resources={MACHINE: "1"} if model is ResourceModel.MACHINES else None,
    )
    if inputs.has_leases:
        NodeLeases(world, access.client("kubelet"))
    note_inputs(inputs, world.notes)
    policy = _schedule_in_process(world, inputs, access)
    nodes = _create_nodes(access, inputs, allocations)
    # The end of the run, and its other participants: objects, programs, events, a peer that uses Batsim's protocol.
    gangs, admissions = _watch_gangs(world, inputs), JobAdmissions(world, admission_kinds(inputs.job_forms))
    devices, cordons = _watch_devices(world, inputs), _watch_cordons(world, server, power)
    tracker = CompletionTracker(
        world, inputs.job_count, outcomes, jobs.report_remaining, scenario.until, observer, gangs
    )
    if server is not None:
        tracker.track_objects(server.api.manifest_client(server.token), inputs.objects, pods.write_pod)
    if server is None or observer is None:
        programs: ProgramTimeDriver = NoPrograms(world, engine.batsim)
    else:
        setup = ProgramSetup(world, loop, scenario, server, inputs.external_programs, observer, scheduler_folder)
        programs = _start_programs(setup, allocations, engine)
    auditor = _create_auditor(world, inputs, policy, programs, scheduler_folder)
    start_timeline(world, access, nodes, inputs.timeline, server, inputs.has_node_lifecycle, cordons)
    link = connect_peer(inputs, submission, tracker, scheduler_folder, engine, power, policy)
    submission.start()
    return Simulation(
        *(world, loop, programs, outcomes, states, allocations.usage, tracker, rules, gangs, admissions),
        unknown_kinds=() if server is None else server.unknown_kinds,
        conflicts=None if server is None else server.conflicts,
        devices=devices,
        auditor=auditor,
        energy=power.energy_log,
        peer_connection=link,
    )


def _watch_cordons(world: World, server: RunServer | None, power: EnergyParts) -> CordonLog | None:
    """Record cordons by clients of the API, if there is one.

    Nodes are also cordoned while their machines are switched off; the journal has the requests for that.
    """
    return None if server is None or power.switches is not None else CordonLog(world)


def _create_world(inputs: Inputs, journal: Journal, reasons: Journal) -> World:
    """Return an empty world. Its time starts early enough for programs and controllers to start before the jobs."""
    clock = Clock(Instant(START - WARM_UP) if inputs.needs_api else START)
    store = Store() if inputs.needs_api else Store(0)
    world = World(Streams(inputs.scenario.seed), journal, store, clock=clock, reasons=reasons, has_event_readers=False)
    world.machines.add_platform(inputs.platform.machines)
    return world


def _create_workload_jobs(
    world: World,
    inputs: Inputs,
    access: Access,
    submission: Submission,
    on_outcome: Callable[[Outcome], None],
    pods: PodsWriter,
) -> WorkloadJobs:
    """Return the tracker of the workloads' jobs, which resubmits evicted and lost jobs."""
    jobs = WorkloadJobs(
        world,
        access.client("batkube"),
        submission.creator,
        resubmit=submission.resubmit if inputs.scenario.resubmits_evicted else None,
        resubmit_lost=submission.resubmit if inputs.scenario.resubmits_lost else None,
        are_nodes_watched=inputs.has_node_lifecycle,
        on_outcome=on_outcome,
        on_pods=pods.write,
    )
    submission.on_refusal = jobs.record_refusal
    return jobs


def _create_observer(world: World) -> ProgramObserver:
    from batkube.programs.observation.observer import ProgramObserver

    return ProgramObserver(world)


def _watch_gangs(world: World, inputs: Inputs) -> GangMonitor | None:
    """Return the monitor for partly started jobs; None if no program places pods individually."""
    jobs = inputs.jobs
    if (
        not inputs.external_programs
        or not inputs.scenario.time.enforces_admission
        or all(job.size == 1 for job in jobs)
    ):
        return None
    from batkube.execution.jobs.gang_monitor import GangMonitor

    names = [program.name.rpartition("/")[2].partition("@")[0] for program in inputs.external_programs]
    return GangMonitor(
        world,
        highest_priority=max(job.priority for job in jobs),
        has_objects=bool(inputs.objects),
        has_evictors=any(name not in _NON_EVICTING_PROGRAMS for name in names),
        may_grow=inputs.may_grow,
        continues_after_deadlock=inputs.scenario.on_deadlock is OnDeadlock.WAIT,
    )


def _watch_devices(world: World, inputs: Inputs) -> DeviceLog | None:
    """Return the log of device allocations, or None if no object can claim devices."""
    if not inputs.objects and not inputs.timeline.applied_objects:
        return None
    from batkube.execution.nodes.device_log import DeviceLog

    return DeviceLog(world)


def _create_server(world: World, inputs: Inputs, rules: ContainerRules) -> RunServer | None:
    """Return the API server, or None if the run has no API clients."""
    if not inputs.needs_api:
        return None
    # Imported lazily: the import takes longer than a small run.
    from batkube.programs.observation.conflicts import SchedulerConflicts
    from batkube.programs.selection.prerequisites import install
    from batkube.programs.startup.launch import make_server

    conflicts = SchedulerConflicts(world) if inputs.scenario.more_schedulers else None
    server = make_server(
        world, PodUsage(world.store, rules), served_api(inputs.scenario, inputs.external_programs), conflicts
    )
    install(inputs.prerequisites, server.api.manifest_client(server.token))
    return server


def _controller_context(
    world: World, inputs: Inputs, server: RunServer | None, rules: ContainerRules
) -> ControllerContext | None:
    """Return the context of our controllers, or None if they do not run."""
    if server is None or not inputs.has_builtin_controllers:
        return None
    from batkube.api.admission.built_in.quota_usage import quota_usage_calculator
    from batkube.components.controllers import ControllerContext

    scales = server.api.manifest_client(server.token, CONTROLLER_MANAGER)
    return ControllerContext(
        quota_usage_calculator(), PodUsage(world.store, rules), scales, server.api.long_lived_token
    )


def _create_nodes(access: Access, inputs: Inputs, allocations: NodeAllocations) -> NodeCreator:
    """Create the nodes, except those that events add later, and their system pods."""
    nodes, machines = NodeCreator(access, inputs.model), inputs.platform.machines
    later = inputs.timeline.added_nodes
    nodes.store((machine for machine in machines if kube_name(machine.name) not in later), START)
    nodes.store_system_pods(inputs.latencies.system_pods, machines, allocations, START)
    return nodes


def _arrivals(inputs: Inputs, world: World) -> Iterable[Job]:
    """Return the jobs of all workloads by submission, with their final submission times and schedulers."""
    jobs: Iterable[Job] = heapq.merge(*(workload.jobs for workload in inputs.workloads), key=lambda job: job.submit)
    if inputs.external_programs:
        from batkube.programs.selection.scheduler_shares import SchedulerShares, assign_schedulers

        shares = SchedulerShares(inputs.scenario.shares, world.streams.named("shares"))
        jobs = assign_schedulers(jobs, inputs.external_programs, world.notes, shares)
    return jobs if inputs.latencies.client is None else inputs.latencies.client.throttle(jobs)


def _start_programs(setup: ProgramSetup, allocations: NodeAllocations, engine: EngineSetup) -> ProgramTimeDriver:
    """Start the external programs with the time driver of the scenario."""
    if setup.scenario.time.mode is TimeMode.EXACT:
        from batkube.programs.startup.launch import start_coordinated

        return start_coordinated(setup, engine.batsim)
    from batkube.pacing.launch import start_paced

    return start_paced(setup, DecisionStats(setup.world, allocations))


def _schedule_in_process(world: World, inputs: Inputs, access: Access) -> PolicyScheduler | None:
    """Start the in-process scheduler of the run's policy, if it has one."""
    if inputs.policy is None:
        return None
    choice = PolicyChoice(
        inputs.policy,
        world.streams.named("policy"),
        inputs.model,
        true_run_time=_true_run_time_function(inputs),
        machines=inputs.platform.machines,
        has_switches=inputs.scenario.energy,
    )
    return start_scheduler(world, access, choice)


def _create_auditor(
    world: World, inputs: Inputs, policy: PolicyScheduler | None, programs: ProgramTimeDriver, folder: Path
) -> RunAuditor | None:
    """Return the auditor of the run's schedulers, or None without --audit."""
    if inputs.scenario.audit is None:
        return None
    # Imported lazily: importing the graph matcher takes longer than a small run.
    from batkube.programs.cache_comparison import CacheComparison, supports_cache_comparison
    from batkube.simulation.parts.auditor import RunAuditor

    pairs = zip(inputs.external_programs, programs.attachments, strict=True)
    comparisons = [
        CacheComparison(attached.process) for program, attached in pairs if supports_cache_comparison(program)
    ]
    return RunAuditor(
        world, inputs.scenario.audit, policy, comparisons, folder, has_external_scheduler=bool(inputs.external_programs)
    )


def _true_run_time_function(inputs: Inputs) -> Callable[[Job], Duration]:
    """Return the function for the run time of a job: on the slowest machines, or in the fluid model without others."""
    slowest, fluid_model = inputs.platform.slowest, inputs.fluid_model
    if inputs.scenario.engine is not None:
        return lambda job: planned_run_time(job, slowest)
    if fluid_model is None:
        return lambda job: run_time_on(job.profile, [slowest] * job.size).length
    return lambda job: fluid_model.isolated_run_time(job).length
