"""Puts the parts of one run together. This is the only place that knows them all."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from batkube.cluster.courses import Courses
from batkube.cluster.mapping import ANY_SCHEDULER, NODE, POD, ResourceModel, kube_name, node_names, node_of
from batkube.cluster.outcomes import Outcome
from batkube.cluster.store import Store
from batkube.cluster.timetable import Timetable
from batkube.cluster.world import World
from batkube.execution.latencies import NO_LATENCIES, Delays, Latencies, read_latencies
from batkube.execution.leases import Leases
from batkube.execution.node_accounts import NodeAccounts, UnguardedAccounts
from batkube.execution.profiles import run_time_on
from batkube.execution.submission import Submission
from batkube.execution.system_pods import node_of_each, system_pod_objects, without_system_pods
from batkube.execution.workload_jobs import WorkloadJobs
from batkube.kernel.clock import Clock
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import START, Duration, Instant
from batkube.kernel.journal import Journal
from batkube.kernel.quantities import CPU, PODS
from batkube.kernel.streams import Streams
from batkube.outputs.files.streams import MachineStatesWriter, PodsWriter
from batkube.platforms.model import Platform
from batkube.platforms.reading import read_platform
from batkube.policies.catalogue import load_policy
from batkube.policies.interface import Policy
from batkube.simulation.attached import WARM_UP, Builder, OutsideRun, OutsideScheduler, RunServer
from batkube.simulation.checks import check_jobs
from batkube.simulation.cluster_parts import PolicyChoice, start_cluster, start_scheduler
from batkube.simulation.foundations import Foundations, foundations_of, lay
from batkube.simulation.happening_parts import (
    Availability,
    check_kinds,
    objects_applied,
    read_timetable,
    start_happenings,
)
from batkube.simulation.objects import check_objects, objects_of
from batkube.simulation.paced.tally import Tally
from batkube.simulation.real_controllers import note_order, watches_nodes, with_node_lifecycle
from batkube.simulation.scenario import OUR_CONTROLLERS, POLICY_PREFIX, OnEviction, OnFailure, Resources, Scenario
from batkube.simulation.witness import Witness
from batkube.simulation.work import Work
from batkube.timing.loop import AtOnce, Loop, Passage
from batkube.timing.paced_text import TimeMode
from batkube.workloads.model import Job, ObjectManifest, Workload
from batkube.workloads.reading import read_workload
from batkube.workloads.rules import ContainerRule, ContainerRules, refuse_idle
from batkube.workloads.rules_reading import read_rules

if TYPE_CHECKING:
    from batkube.simulation.controller_parts import Surroundings


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything a scenario names, read and checked."""

    scenario: Scenario
    workloads: tuple[Workload, ...]
    platform: Platform
    #: The platform with what the cluster's own pods leave of it to jobs.
    left: Platform
    model: ResourceModel
    #: The in-process scheduler, or None when there are outside programs.
    policy: Policy | None
    #: The outside programs, the main one first.
    outside: tuple[OutsideScheduler, ...]
    latencies: Latencies
    #: What containers do.
    rules: tuple[ContainerRule, ...]
    #: The objects of all workloads, in the order in which they are applied.
    objects: tuple[ObjectManifest, ...]
    timetable: Timetable
    #: What is there before the outside programs start.
    foundations: Foundations = ()

    @property
    def has_own_controllers(self) -> bool:
        """Whether our controllers are at work: where the scenario says so, or leaves it open and there are objects."""
        chosen = self.scenario.controllers
        return chosen == OUR_CONTROLLERS or (chosen is None and bool(self.objects or self.timetable.objects))

    @property
    def are_nodes_watched(self) -> bool:
        """Whether controllers notice that a node is silent, and evict its pods; else that is known at once."""
        has_manager = self.scenario.controller_manager is not None
        return self.has_own_controllers or has_manager or self.has_leases

    @property
    def has_leases(self) -> bool:
        """Whether kubelets write their leases, because a program watches over nodes by them, and we do not."""
        return any(watches_nodes(program) for program in self.outside)

    @property
    def needs_api(self) -> bool:
        """Whether anybody reads or writes through the API: programs, controllers, or who applies objects."""
        named = self.timetable.objects_named or self.timetable.objects
        return bool(self.outside or self.objects or named) or self.has_own_controllers

    @property
    def job_count(self) -> int:
        """How many jobs there are in all."""
        return sum(len(workload.jobs) for workload in self.workloads)


def read_inputs(scenario: Scenario, builder: Builder | None = None) -> Inputs:
    """Read what `scenario` names and refuse what can never run, before anything is written.

    `builder` gives the program of an outside scheduler by its name; it is built if need be.
    """
    policy = (
        None
        if scenario.is_outside
        else load_policy(scenario.scheduler.removeprefix(POLICY_PREFIX), scenario.scheduler_args)
    )
    outside: tuple[OutsideScheduler, ...] = ()
    if scenario.is_outside:
        from batkube.simulation.choosing import outside_programs

        outside = outside_programs(scenario, builder)
    latencies = NO_LATENCIES if scenario.latencies is None else read_latencies(scenario.latencies)
    rules = () if scenario.rules is None else read_rules(scenario.rules)
    timetable = read_timetable(scenario.events, scenario.events_source, read_platform(scenario.platform))
    platform = timetable.platform
    workloads = tuple(
        read_workload(path, name=f"w{number}", with_objects=True) for number, path in enumerate(scenario.workloads)
    )
    model = _resource_model(scenario, workloads)
    left = replace(platform, machines=without_system_pods(platform.machines, latencies.system_pods))
    for workload in workloads:
        check_jobs(workload, left, model)
    objects = tuple(objects_of(workloads))
    applied = objects_applied(timetable)
    foundations = foundations_of(outside, platform.machines, model)
    check_objects(objects, scenario.until, applied, foundations)
    check_kinds(timetable, [*objects, *applied])
    if not scenario.attach:
        refuse_idle(rules, [manifest.fields for manifest in (*objects, *applied)])
    if timetable.concerns_nodes and scenario.time.mode is TimeMode.EXACT:
        # What programs make of their own accord nobody can tell beforehand.
        kinds = None if scenario.attach else {manifest.kind for manifest in (*objects, *applied)}
        outside = tuple(with_node_lifecycle(program, kinds) for program in outside)
    return Inputs(
        scenario, workloads, platform, left, model, policy, outside, latencies, rules, objects, timetable, foundations
    )


def _resource_model(scenario: Scenario, workloads: Iterable[Workload]) -> ResourceModel:
    if scenario.resources is not Resources.AUTO:
        return ResourceModel(scenario.resources.value)
    jobs = [job for workload in workloads for job in workload.jobs]
    return ResourceModel.REQUESTS if not jobs or any(job.requests for job in jobs) else ResourceModel.MACHINES


@dataclass(frozen=True, slots=True)
class Simulation:
    """One run, ready to go: its world, how time goes on in it, and what comes out."""

    world: World
    loop: Loop
    passage: Passage
    #: Of the workloads' jobs.
    outcomes: list[Outcome]
    machine_states: MachineStatesWriter
    work: Work
    rules: ContainerRules
    #: The outside programs, when the scheduler is one; the passage then.
    programs: OutsideRun | None = None

    @property
    def all_outcomes(self) -> list[Outcome]:
        """Those of the workloads' jobs, then those of Jobs that their controllers saw to the end."""
        records = self.work.records
        return self.outcomes if records is None else self.outcomes + records.outcomes


def assemble(
    inputs: Inputs, journal: Journal, pods_file: TextIO, states_file: TextIO, scheduler_folder: Path
) -> Simulation:
    """Wire one run: workload → store → scheduler → kubelets → outputs."""
    scenario, machines, model = inputs.scenario, inputs.platform.machines, inputs.model
    # Programs and controllers come up before the first job does.
    clock = Clock(Instant(START - WARM_UP) if inputs.needs_api else START)
    world = World(Streams(scenario.seed), journal, Store() if inputs.needs_api else Store(0), clock=clock)
    loop, courses, names = Loop(world), Courses(), node_names(machines)
    outcomes: list[Outcome] = []
    states = MachineStatesWriter(states_file, len(machines))
    witness = Witness(world) if inputs.outside else None
    pods = PodsWriter(pods_file, names, None if witness is None else witness.story)
    delays = None if inputs.latencies.are_zero else Delays(inputs.latencies, world.streams)
    accounts = NodeAccounts(world.store) if scenario.time.refuses_pods else UnguardedAccounts(world)
    submission = Submission(world, _arrivals(inputs, world.notes), courses, model, delays)
    jobs = WorkloadJobs(
        world,
        courses,
        machines,
        resubmit=submission.resubmit if scenario.on_eviction is OnEviction.RESUBMIT else None,
        resubmit_lost=submission.resubmit if scenario.on_failure is OnFailure.RESUBMIT else None,
        are_nodes_watched=inputs.are_nodes_watched,
        on_outcome=outcomes.append,
        on_pods=pods.write,
    )
    server, rules = _server(world, inputs), ContainerRules(inputs.rules, world.streams)
    start_cluster(
        world,
        None if server is None else server.api.client,
        courses,
        conductor=jobs,
        accounts=accounts,
        rules=rules,
        delays=delays,
        on_busy=Availability(world, names, accounts, states.change).change if inputs.timetable else states.change,
        controllers=_surroundings() if inputs.has_own_controllers else None,
        has_agents=inputs.are_nodes_watched,
        watches_nodes=not inputs.has_leases,
        has_readers=False,
    )
    if inputs.has_leases and server is not None:
        Leases(world, server.api.client("kubelet"))
    _note_inputs(inputs, world.notes)
    if inputs.policy is not None:
        _schedule_in_process(world, inputs, inputs.policy, courses, server)
    nodes = [node_of(one, model, START) for one in machines if kube_name(one.name) not in inputs.timetable.added]
    world.store.create(NODE, [key for key, _ in nodes], [node for _, node in nodes], START)
    _start_system_pods(world, inputs, accounts)
    work = Work(world, inputs.job_count, outcomes, jobs.tell_the_rest, scenario.until, witness)
    if server is not None:
        work.watch_objects(server.api.manifests(server.token), inputs.objects, courses, names, pods.write_pod)
    programs: OutsideRun | None = None
    if witness is not None and server is not None:
        programs = _start_programs(world, loop, inputs, server, witness, accounts, scheduler_folder)
    start_happenings(world, inputs.timetable, model, server, are_nodes_watched=inputs.are_nodes_watched)
    submission.begin()
    return Simulation(world, loop, programs or AtOnce(world), outcomes, states, work, rules, programs)


def _server(world: World, inputs: Inputs) -> RunServer | None:
    """Return the API server of a run that has somebody to serve."""
    if not inputs.needs_api:
        return None
    # Imported only where it is needed: loading it takes longer than a small run does to run.
    from batkube.simulation.launching import old_versions
    from batkube.simulation.outside import make_server

    server = make_server(world, old_versions(inputs.outside))
    lay(inputs.foundations, server.api.manifests(server.token))
    return server


def _surroundings() -> Surroundings:
    from batkube.api.admission.usage import usage_by_storage
    from batkube.simulation.controller_parts import Surroundings

    return Surroundings(usage_by_storage(), has_readers=False)


def _start_system_pods(world: World, inputs: Inputs, accounts: NodeAccounts) -> None:
    """Let the cluster's own pods run: they are there before the first job, and hold what they ask for."""
    pods, machines = inputs.latencies.system_pods, inputs.platform.machines
    if not pods:
        return
    names = node_names(machines)
    world.store.create(POD, *system_pod_objects(pods, machines, names, START), START)
    for pod, machine_id in zip(pods, node_of_each(pods, machines), strict=True):
        accounts.reserve(names[machine_id], (*pod.requests, (PODS, 1)))


def _arrivals(inputs: Inputs, notes: FidelityNotes) -> Iterable[Job]:
    """Return the jobs of all workloads in the order, at the times and for the schedulers they are submitted."""
    jobs: Iterable[Job] = heapq.merge(*(workload.jobs for workload in inputs.workloads), key=lambda job: job.submit)
    if inputs.outside:
        from batkube.simulation.naming import served_jobs

        jobs = served_jobs(jobs, inputs.outside, notes)
    return jobs if inputs.latencies.client is None else inputs.latencies.client.submit(jobs)


def _start_programs(
    world: World,
    loop: Loop,
    inputs: Inputs,
    server: RunServer,
    witness: Witness,
    accounts: NodeAccounts,
    folder: Path,
) -> OutsideRun:
    """Start the outside schedulers; how time goes on for them is the scenario's choice."""
    scenario = inputs.scenario
    if scenario.time.mode is TimeMode.EXACT:
        from batkube.simulation.outside import coordinate

        return coordinate(world, server, inputs.outside, scenario, witness, folder)
    from batkube.simulation.paced.starting import pace

    return pace(world, loop, server, inputs.outside, scenario, witness, folder, Tally(world, accounts))


def _schedule_in_process(
    world: World, inputs: Inputs, policy: Policy, courses: Courses, server: RunServer | None
) -> None:
    """Let a policy of ours, or the user's, schedule."""
    choice = PolicyChoice(
        policy,
        world.streams.named("policy"),
        inputs.model,
        true_length=_true_lengths(inputs.platform),
        machines=inputs.platform.machines,
    )
    client = None if server is None else server.api.client("kube-scheduler")
    start_scheduler(world, client, courses, choice, has_readers=False)


def _true_lengths(platform: Platform) -> Callable[[Job], Duration]:
    """Return the function that tells how long a job takes on the slowest machine."""
    slowest = platform.slowest
    return lambda job: run_time_on(job.profile, [slowest] * job.size).length


def _note_inputs(inputs: Inputs, notes: FidelityNotes) -> None:
    """Say what a reader of the results should know of the inputs."""
    sources: list[Workload | Platform] = [*inputs.workloads, inputs.platform]
    for given in sources:
        for note, count in given.notes:
            notes.add(note, example=given.source, count=count)
    jobs = [job for workload in inputs.workloads for job in workload.jobs]
    named = [job for job in jobs if job.scheduler not in ANY_SCHEDULER]
    if named and inputs.policy is not None:
        note = FidelityNote("scheduler", "jobs ask for a scheduler by name, and the run's only one took them")
        notes.add(note, example=f"job {named[0].key} asks for {named[0].scheduler!r}", count=len(named))
    for program in inputs.outside:
        note_order(program, notes)
    gangs = [job for job in jobs if job.size > 1]
    if gangs and inputs.outside:
        note = FidelityNote(
            "scheduler", "a job's pods are placed one by one, and hold their nodes until the last has one"
        )
        notes.add(note, example=f"job {gangs[0].key} has {gangs[0].size} pods", count=len(gangs))
    if inputs.objects and jobs and inputs.model is ResourceModel.MACHINES:
        note = FidelityNote("workload", "jobs take machines whole, and do not keep pods of objects off them")
        notes.add(note, example=f"job {jobs[0].key}", count=len(jobs))
    if inputs.model is ResourceModel.REQUESTS:
        modest = [job for job in jobs if CPU not in dict(job.requests)]
        if modest:
            note = FidelityNote("workload", "jobs ask for no cpu, so any number of them shares a node")
            notes.add(note, example=f"job {modest[0].key}", count=len(modest))
