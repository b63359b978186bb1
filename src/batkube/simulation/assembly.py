"""Puts the parts of one run together. This is the only place that knows them all."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from batkube.cluster.mapping import NODE, POD, ResourceModel, kube_name, node_names, node_of
from batkube.cluster.outcomes import Outcome
from batkube.cluster.pod_use import PodUse
from batkube.cluster.resource_usage import ResourceUsage
from batkube.cluster.store import Store
from batkube.cluster.world import World
from batkube.components.cluster import KubeletSetup, start_cluster, start_scheduler
from batkube.execution.admissions import Admissions
from batkube.execution.latencies import Delays
from batkube.execution.leases import Leases
from batkube.execution.node_accounts import NodeAccounts, UnguardedAccounts
from batkube.execution.profiles import run_time_on
from batkube.execution.submission import Submission
from batkube.execution.system_pods import node_of_each, system_pod_objects
from batkube.execution.workload_jobs import WorkloadJobs
from batkube.kernel.clock import Clock
from batkube.kernel.instants import START, Duration, Instant
from batkube.kernel.journal import Journal
from batkube.kernel.quantities import MACHINE, PODS
from batkube.kernel.streams import Streams
from batkube.outputs.files.streams import MachineStatesWriter, PodsWriter
from batkube.pacing.tally import Tally
from batkube.policies.scheduler import PolicyChoice
from batkube.programs.program import WARM_UP, NoPrograms, OutsideRun, ProgramSetup, RunServer
from batkube.scenarios.scenario import CONTROLLER_MANAGER, OnDeadlock
from batkube.simulation.batsim_link import outcome_listener, partner_link
from batkube.simulation.engine import NO_PARTNER, EngineParts, PartnerLink, engine_of_run, length_to_plan_with
from batkube.simulation.events import start_happenings, watch_machines
from batkube.simulation.input_notes import note_inputs
from batkube.simulation.inputs import Inputs, versions_served
from batkube.simulation.job_forms import admitted_kinds, maker_of
from batkube.simulation.power import power_of_run
from batkube.simulation.work import Work
from batkube.timing.loop import Loop
from batkube.timing.paced_text import TimeMode
from batkube.workloads.model import Job
from batkube.workloads.rules import ContainerRules

if TYPE_CHECKING:
    from batkube.components.controllers import ControllerContext
    from batkube.execution.course_work import Workplace
    from batkube.execution.device_book import DeviceBook
    from batkube.execution.energy_book import EnergyBook
    from batkube.execution.gang_watch import GangWatch
    from batkube.policies.scheduler import PolicyScheduler
    from batkube.programs.conflicts import SchedulerConflicts
    from batkube.programs.observer import Observer
    from batkube.simulation.auditing import RunAuditor


#: kube-scheduler evicts only to make room for pods of a higher priority, and controllers only from nodes that fail.
_NO_EVICTORS = ("kube-scheduler", CONTROLLER_MANAGER)


@dataclass(frozen=True, slots=True)
class Simulation:
    """One run, ready to go: its world, how time goes on in it, and what comes out."""

    world: World
    loop: Loop
    #: The outside programs, if there are any, and how time goes on.
    programs: OutsideRun
    #: Of the workloads' jobs.
    outcomes: list[Outcome]
    machine_states: MachineStatesWriter
    #: What pods held of the nodes.
    usage: ResourceUsage
    work: Work
    rules: ContainerRules
    #: Jobs of many pods, of which a program may start some and not others; None where none does.
    gangs: GangWatch | None
    #: When schedulers of jobs let them in.
    admissions: Admissions
    #: What programs asked for in vain, because nobody has defined it.
    unknown_kinds: Sequence[str] = ()
    #: What several schedulers did to one another.
    conflicts: SchedulerConflicts | None = None
    #: Who held which device, where there may be claims to some.
    devices: DeviceBook | None = None
    #: Compares what schedulers believe of the cluster with the cluster.
    auditor: RunAuditor | None = None
    #: What was read of the machines' meters, where energy is asked for.
    energy: EnergyBook | None = None
    #: The wire to a scheduler of Batsim's protocol, or to a Batsim.
    link: PartnerLink = NO_PARTNER

    @property
    def all_outcomes(self) -> list[Outcome]:
        """Those of the workloads' jobs, then those of Jobs that their controllers saw to the end."""
        records = self.work.records
        return self.outcomes if records is None else self.outcomes + records.outcomes


def assemble(
    inputs: Inputs, journal: Journal, pods_file: TextIO, states_file: TextIO, scheduler_folder: Path
) -> Simulation:
    """Wire one run: workload → store → scheduler → kubelets → outputs.

    Listeners hear of a change in the order in which they were made, so the order of these paragraphs is part of the
    results: nodes come after those who look at them, and nothing arrives before everybody is there.
    """
    # The world, and what is written of it.
    scenario, machines, model = inputs.scenario, inputs.platform.machines, inputs.model
    world, outcomes = _world(inputs, journal), list[Outcome]()
    loop, rules = Loop(world), ContainerRules(inputs.rules, world.streams)
    states = MachineStatesWriter(states_file, len(machines))
    observer = _observer(world) if inputs.outside else None
    pods = PodsWriter(pods_file, world.machines.names, None if observer is None else observer.story)
    accounts = NodeAccounts(world.store) if scenario.time.refuses_pods else UnguardedAccounts(world)
    server = _server(world, inputs, rules)
    # Jobs: how they arrive, what they are made into, and what becomes of them.
    maker = maker_of(world, model, None if server is None else server.api.client("batkube"), inputs.job_forms)
    delays = None if inputs.latencies.are_zero else Delays(inputs.latencies, world.streams)
    arrivals = _arrivals(inputs, world)
    engine = engine_of_run(world, inputs, arrivals, scheduler_folder.parent / "engine")
    submission = Submission(world, arrivals if engine.batsim is None else (), maker, delays)
    power = power_of_run(world, inputs)
    on_outcome = outcome_listener(inputs, outcomes, engine)
    jobs = _workload_jobs(world, inputs, submission, engine.batsim or power.courses, on_outcome, pods)
    # The cluster: kubelets, controllers, a policy's scheduler, and then its nodes.
    may_go = bool(inputs.timetable or inputs.outside)
    on_busy = watch_machines(world, accounts, states, power.switches, may_go=may_go)
    start_cluster(
        world,
        None if server is None else server.api.client,
        KubeletSetup(accounts, jobs, delays, rules, on_busy),
        _controller_context(world, inputs, server, rules),
        has_lifecycle=inputs.are_nodes_watched,
        watches_nodes=not inputs.has_leases,
        node_resources={MACHINE: "1"} if model is ResourceModel.MACHINES else None,
    )
    if inputs.has_leases and server is not None:
        Leases(world, server.api.client("kubelet"))
    note_inputs(inputs, world.notes)
    policy = _schedule_in_process(world, inputs, server)
    _start_nodes(world, inputs)
    _start_system_pods(world, inputs, accounts)
    # What ends the run, and who else takes part in it: objects, programs, events, a partner by Batsim's protocol.
    gangs = _watch_gangs(world, inputs)
    admissions = Admissions(world, admitted_kinds(inputs.job_forms))
    devices = _watch_devices(world, inputs)
    work = Work(world, inputs.job_count, outcomes, jobs.tell_the_rest, scenario.until, observer, gangs)
    if server is not None:
        work.watch_objects(server.api.manifests(server.token), inputs.objects, pods.write_pod)
    if server is None or observer is None:
        programs: OutsideRun = NoPrograms(world, engine.batsim)
    else:
        setup = ProgramSetup(world, loop, scenario, server, inputs.outside, observer, scheduler_folder)
        programs = _start_programs(setup, accounts, engine)
    auditor = _audit(world, inputs, policy, programs, scheduler_folder)
    start_happenings(world, inputs.timetable, model, server, are_nodes_watched=inputs.are_nodes_watched)
    link = partner_link(inputs, submission, work, scheduler_folder, engine, power, policy)
    submission.begin()
    return Simulation(
        *(world, loop, programs, outcomes, states, accounts.usage, work, rules, gangs, admissions),
        unknown_kinds=() if server is None else server.unknown_kinds,
        conflicts=None if server is None else server.conflicts,
        devices=devices,
        auditor=auditor,
        energy=power.book,
        link=link,
    )


def _world(inputs: Inputs, journal: Journal) -> World:
    """Return a world without anything in it; programs and controllers come up before the first job does."""
    clock = Clock(Instant(START - WARM_UP) if inputs.needs_api else START)
    store = Store() if inputs.needs_api else Store(0)
    world = World(Streams(inputs.scenario.seed), journal, store, clock=clock, has_readers=False)
    world.machines.describe(inputs.platform.machines)
    return world


def _workload_jobs(
    world: World,
    inputs: Inputs,
    submission: Submission,
    workplace: Workplace | None,
    on_outcome: Callable[[Outcome], None],
    pods: PodsWriter,
) -> WorkloadJobs:
    """Return who follows the workloads' jobs to their ends, and submits again what was evicted or lost."""
    jobs = WorkloadJobs(
        world,
        submission.maker,
        resubmit=submission.resubmit if inputs.scenario.resubmits_evicted else None,
        resubmit_lost=submission.resubmit if inputs.scenario.resubmits_lost else None,
        are_nodes_watched=inputs.are_nodes_watched,
        work=workplace,
        on_outcome=on_outcome,
        on_pods=pods.write,
    )
    submission.on_refusal = jobs.refuse
    return jobs


def _observer(world: World) -> Observer:
    from batkube.programs.observer import Observer

    return Observer(world)


def _watch_gangs(world: World, inputs: Inputs) -> GangWatch | None:
    """Return the watch for jobs that are started in part; None where no program places pods one by one."""
    jobs = inputs.jobs
    if not inputs.outside or not inputs.scenario.time.refuses_pods or all(job.size == 1 for job in jobs):
        return None
    from batkube.execution.gang_watch import GangWatch

    names = [program.name.rpartition("/")[2].partition("@")[0] for program in inputs.outside]
    return GangWatch(
        world,
        highest_priority=max(job.priority for job in jobs),
        has_objects=bool(inputs.objects),
        has_evictors=any(name not in _NO_EVICTORS for name in names),
        goes_on=inputs.scenario.on_deadlock is OnDeadlock.WAIT,
    )


def _watch_devices(world: World, inputs: Inputs) -> DeviceBook | None:
    """Return the book of devices; only objects can claim some."""
    if not inputs.objects and not inputs.timetable.objects:
        return None
    from batkube.execution.device_book import DeviceBook

    return DeviceBook(world)


def _server(world: World, inputs: Inputs, rules: ContainerRules) -> RunServer | None:
    """Return the API server of a run that has somebody to serve."""
    if not inputs.needs_api:
        return None
    # Imported only where it is needed: loading it takes longer than a small run does to run.
    from batkube.programs.conflicts import SchedulerConflicts
    from batkube.programs.launch import make_server
    from batkube.programs.prerequisites import install

    conflicts = SchedulerConflicts(world) if inputs.scenario.more_schedulers else None
    server = make_server(world, PodUse(world.store, rules), versions_served(inputs.scenario, inputs.outside), conflicts)
    install(inputs.prerequisites, server.api.manifests(server.token))
    return server


def _controller_context(
    world: World, inputs: Inputs, server: RunServer | None, rules: ContainerRules
) -> ControllerContext | None:
    """Return what our controllers need to know, where they are at work."""
    if server is None or not inputs.has_own_controllers:
        return None
    from batkube.api.admission.usage import usage_by_storage
    from batkube.components.controllers import ControllerContext

    scales = server.api.manifests(server.token, CONTROLLER_MANAGER)
    return ControllerContext(usage_by_storage(), PodUse(world.store, rules), scales, server.api.lasting_token)


def _start_nodes(world: World, inputs: Inputs) -> None:
    """Let the nodes be there that no event adds later."""
    machines, later = inputs.platform.machines, inputs.timetable.added
    nodes = [node_of(one, inputs.model, START) for one in machines if kube_name(one.name) not in later]
    world.store.create(NODE, [key for key, _ in nodes], [node for _, node in nodes], START)


def _start_system_pods(world: World, inputs: Inputs, accounts: NodeAccounts) -> None:
    """Let the cluster's own pods run: they are there before the first job, and hold what they ask for."""
    pods, machines = inputs.latencies.system_pods, inputs.platform.machines
    if not pods:
        return
    names = node_names(machines)
    world.store.create(POD, *system_pod_objects(pods, machines, names, START), START)
    for pod, machine_id in zip(pods, node_of_each(pods, machines), strict=True):
        accounts.reserve(names[machine_id], (*pod.requests, (PODS, 1)))


def _arrivals(inputs: Inputs, world: World) -> Iterable[Job]:
    """Return the jobs of all workloads in the order, at the times and for the schedulers they are submitted."""
    jobs: Iterable[Job] = heapq.merge(*(workload.jobs for workload in inputs.workloads), key=lambda job: job.submit)
    if inputs.outside:
        from batkube.programs.scheduler_names import Lots, served_jobs

        lots = Lots(inputs.scenario.shares, world.streams.named("shares"))
        jobs = served_jobs(jobs, inputs.outside, world.notes, lots)
    return jobs if inputs.latencies.client is None else inputs.latencies.client.submit(jobs)


def _start_programs(setup: ProgramSetup, accounts: NodeAccounts, engine: EngineParts) -> OutsideRun:
    """Start the outside programs; how time goes on for them is the scenario's choice."""
    if setup.scenario.time.mode is TimeMode.EXACT:
        from batkube.programs.launch import coordinate

        return coordinate(setup, engine.batsim)
    from batkube.pacing.launch import pace

    return pace(setup, Tally(setup.world, accounts))


def _schedule_in_process(world: World, inputs: Inputs, server: RunServer | None) -> PolicyScheduler | None:
    """Let a policy of ours, or the user's, schedule, if that is asked for."""
    if inputs.policy is None:
        return None
    choice = PolicyChoice(
        inputs.policy,
        world.streams.named("policy"),
        inputs.model,
        true_length=_true_lengths(inputs),
        machines=inputs.platform.machines,
        has_switches=inputs.scenario.energy,
    )
    client = None if server is None else server.api.client("kube-scheduler")
    return start_scheduler(world, client, choice)


def _audit(
    world: World, inputs: Inputs, policy: PolicyScheduler | None, programs: OutsideRun, folder: Path
) -> RunAuditor | None:
    """Return the auditor of the run's schedulers, where one is asked for."""
    if inputs.scenario.audit is None:
        return None
    # Imported only where they are needed: matching on graphs takes longer to load than a small run takes.
    from batkube.programs.cache_comparison import CacheComparison, compares
    from batkube.simulation.auditing import RunAuditor

    pairs = zip(inputs.outside, programs.attachments, strict=True)
    comparisons = [CacheComparison(attached.process) for program, attached in pairs if compares(program)]
    return RunAuditor(world, inputs.scenario.audit, policy, comparisons, folder, is_outside=bool(inputs.outside))


def _true_lengths(inputs: Inputs) -> Callable[[Job], Duration]:
    """Return the function that tells how long a job takes on the slowest machine; if it flows, alone on the first."""
    slowest, fluid_model = inputs.platform.slowest, inputs.fluid_model
    if inputs.scenario.engine is not None:
        return lambda job: length_to_plan_with(job, slowest)
    if fluid_model is None:
        return lambda job: run_time_on(job.profile, [slowest] * job.size).length
    return lambda job: fluid_model.length_alone(job).length
