"""Read and check the inputs of a scenario, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.cluster.kinds import ServedApi, validate_versions
from batkube.cluster.mapping import ResourceModel
from batkube.execution.latencies.delays import NO_LATENCIES, Latencies, read_latencies
from batkube.execution.latencies.system_pods import without_system_pods
from batkube.execution.profiles.run_times import is_delay, only_computes
from batkube.execution.timeline.events import ClusterTimeline
from batkube.kernel.errors import InputError
from batkube.platforms.model import Platform
from batkube.platforms.reader import read_platform
from batkube.policies.interface import Policy
from batkube.policies.registry.catalogue import load_policy, make_policy
from batkube.programs.program import Builder, ExternalProgram
from batkube.programs.selection.controller_manager import (
    AUTOSCALING,
    NODE_LIFECYCLE,
    runs_node_lifecycle,
    with_controllers,
)
from batkube.scenarios.scenario import (
    BATSIM_ENGINE,
    BATSIM_PREFIX,
    NO_CONTROLLERS,
    OUR_CONTROLLERS,
    POLICY_PREFIX,
    Resources,
    Scenario,
)
from batkube.simulation.preparation.feasibility import check_jobs
from batkube.simulation.preparation.job_forms import (
    JobForms,
    is_owned_by_controller,
    job_forms_of,
    require_job_controller,
)
from batkube.simulation.preparation.objects import check_objects, objects_of
from batkube.simulation.preparation.timeline import check_event_kinds, objects_of_events, read_timeline
from batkube.timing.time_rules import TimeMode
from batkube.workloads.container_rules.reader import read_rules
from batkube.workloads.container_rules.rules import ContainerRule, reject_unmatched_rules
from batkube.workloads.model import Job, ObjectManifest, Workload
from batkube.workloads.reader import read_workload
from batkube.workloads.synthetic.recipes import WorkloadRecipe

if TYPE_CHECKING:
    from batkube.execution.profiles.fluid_model import FluidModel
    from batkube.programs.selection.prerequisites import Prerequisites

PolicyObject = Policy | type[Policy]
"""A user's policy in Python: a class or an instance."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a scenario, read and checked."""

    scenario: Scenario
    workloads: tuple[Workload, ...]
    platform: Platform
    model: ResourceModel
    #: The in-process scheduler, or None if external programs schedule.
    policy: Policy | None
    #: The external programs, the main scheduler first.
    external_programs: tuple[ExternalProgram, ...]
    latencies: Latencies
    #: The behaviour of containers.
    rules: tuple[ContainerRule, ...]
    #: The objects of all workloads, in the order in which they are applied.
    objects: tuple[ObjectManifest, ...]
    timeline: ClusterTimeline
    #: The objects that exist before the external programs start.
    prerequisites: Prerequisites = ()
    #: The form of jobs by scheduler; empty if a policy schedules.
    job_forms: JobForms = field(default_factory=dict)
    #: The model of jobs that compute and communicate; None if jobs do not affect each other.
    fluid_model: FluidModel | None = None
    #: Jobs that can only run if a program adds nodes.
    too_large: tuple[str, ...] = ()

    @property
    def may_grow(self) -> bool:
        """Whether some program may create nodes."""
        return _may_grow(self.external_programs)

    @property
    def has_builtin_controllers(self) -> bool:
        """Whether our controllers run: if the scenario requests it, or by default if there are objects."""
        choice = self.scenario.controllers
        has_objects = bool(self.objects or self.timeline.applied_objects) or any(
            map(is_owned_by_controller, self.job_forms.values())
        )
        return choice == OUR_CONTROLLERS or (choice is None and has_objects)

    @property
    def has_node_lifecycle(self) -> bool:
        """Whether controllers detect silent nodes and evict their pods; otherwise failures are detected at once."""
        has_manager = self.scenario.controller_manager is not None
        return self.has_builtin_controllers or has_manager or self.has_leases

    @property
    def has_leases(self) -> bool:
        """Whether kubelets renew their Leases, because an external program monitors nodes by them."""
        return any(runs_node_lifecycle(program) for program in self.external_programs)

    @property
    def needs_api(self) -> bool:
        """Whether the run has API clients: programs, controllers, or objects to apply."""
        has_objects = bool(self.objects or self.timeline.applied_objects or self.timeline.changed_kinds)
        return bool(self.external_programs) or has_objects or self.has_builtin_controllers

    @property
    def jobs(self) -> list[Job]:
        """The jobs of all workloads."""
        return jobs_of(self.workloads)

    @property
    def job_count(self) -> int:
        """How many jobs there are in all."""
        return sum(len(workload.jobs) for workload in self.workloads)


def jobs_of(workloads: Iterable[Workload]) -> list[Job]:
    """Return the jobs of workloads, one workload after the other."""
    return [job for workload in workloads for job in workload.jobs]


def read_inputs(scenario: Scenario, builder: Builder | None = None, own_policy: PolicyObject | None = None) -> Inputs:
    """Read the inputs of `scenario`, and raise InputError for those that can never run.

    `builder` returns the program of an external scheduler by name, and builds it if necessary. `own_policy` is the
    policy that was passed as an object; the scenario has only its name.
    """
    policy, outside = _schedulers(scenario, builder, own_policy)
    latencies = NO_LATENCIES if scenario.latencies is None else read_latencies(scenario.latencies)
    rules = () if scenario.rules is None else read_rules(scenario.rules)
    timeline = read_timeline(scenario.events, scenario.events_source, read_platform(scenario.platform))
    platform = timeline.platform
    workloads = tuple(_workloads(scenario))
    model = _resource_model(scenario, workloads)
    # The platform without the requests of system pods.
    rest = replace(platform, machines=without_system_pods(platform.machines, latencies.system_pods))
    has_engine = scenario.engine is not None
    if has_engine:
        _check_engine(scenario, latencies)
    fluid_model = None if has_engine else fluid_model_of(workloads, platform, model, has_energy=scenario.energy)
    if fluid_model is not None:
        fluid_model.has_messages = scenario.scheduler.startswith(BATSIM_PREFIX)
    may_grow = _may_grow(outside)
    too_large = tuple(
        job.key
        for workload in workloads
        for job in check_jobs(workload, rest, model, fluid_model, checks_profiles=not has_engine, may_grow=may_grow)
    )
    objects, later_objects = tuple(objects_of(workloads)), objects_of_events(timeline)
    all_objects = [*objects, *later_objects]
    prerequisites = _prerequisites(outside, platform, model)
    api = served_api(scenario, outside)
    check_objects(objects, scenario.until, later_objects, prerequisites, api)
    check_event_kinds(timeline, all_objects, api.kubernetes)
    if not outside:
        # External programs can create further pods, so their runs only note unused rules at the end.
        reject_unmatched_rules(rules, [manifest.fields for manifest in all_objects])
    more = _optional_controllers(timeline, all_objects) if scenario.time.mode is TimeMode.EXACT else ()
    outside = tuple(with_controllers(program, more) for program in outside)
    defined = [*(fields for _, fields in prerequisites), *(manifest.fields for manifest in all_objects)]
    job_forms = job_forms_of(scenario.submit_as, outside, defined)
    if scenario.controllers == NO_CONTROLLERS and not scenario.attach:
        require_job_controller(job_forms)
    return Inputs(
        scenario,
        workloads,
        platform,
        model,
        policy,
        outside,
        latencies,
        rules,
        objects,
        timeline,
        prerequisites,
        job_forms,
        fluid_model,
        too_large,
    )


def _may_grow(outside: Iterable[ExternalProgram]) -> bool:
    """Return whether some program may create nodes, as autoscalers do: any but those of our catalogue."""
    return not all(program.start.is_built_in for program in outside)


def _workloads(scenario: Scenario) -> Iterator[Workload]:
    """Yield the workloads, read from files or created from recipes."""
    for number, source in enumerate(scenario.workloads):
        name = f"w{number}"
        if isinstance(source, WorkloadRecipe):
            yield source.make(scenario.seed, name)
        else:
            yield read_workload(source, name=name, with_objects=True)


def served_api(scenario: Scenario, outside: Sequence[ExternalProgram]) -> ServedApi:
    """Return the API to serve: as the scenario requests, and as programs need."""
    from batkube.programs.startup.command_lines import required_api_versions, required_kubernetes

    kubernetes = required_kubernetes(outside, scenario.kubernetes)
    more_versions = validate_versions(scenario.api, "scenario", "api", kubernetes)
    return ServedApi(kubernetes, (*more_versions, *required_api_versions(outside)))


def _optional_controllers(timeline: ClusterTimeline, objects: Sequence[ObjectManifest]) -> tuple[str, ...]:
    """Return the controllers that only some runs need; they are off by default because they poll often."""
    has_autoscalers = any(manifest.kind == "HorizontalPodAutoscaler" for manifest in objects)
    return (NODE_LIFECYCLE,) * timeline.affects_nodes + (AUTOSCALING,) * has_autoscalers


def _schedulers(
    scenario: Scenario, builder: Builder | None, own_policy: PolicyObject | None
) -> tuple[Policy | None, tuple[ExternalProgram, ...]]:
    """Return the policy that schedules, or the programs that do."""
    if own_policy is not None:
        return make_policy(own_policy, scenario.scheduler.removeprefix(POLICY_PREFIX), scenario.scheduler_args), ()
    if scenario.scheduler.startswith(BATSIM_PREFIX):
        from batkube.batsim.schedulers.arguments import batsim_scheduler

        spec = scenario.scheduler.removeprefix(BATSIM_PREFIX)
        return batsim_scheduler(spec, scenario.scheduler_args), ()
    if not scenario.has_external_scheduler:
        return load_policy(scenario.scheduler.removeprefix(POLICY_PREFIX), scenario.scheduler_args), ()
    from batkube.programs.selection.external_programs import external_programs

    return None, external_programs(scenario, builder)


def _check_engine(scenario: Scenario, latencies: Latencies) -> None:
    """Raise InputError for inputs that a Batsim as engine does not support."""
    if latencies.client is not None:
        problem = "cannot be used with engine batsim, which submits the jobs itself"
        raise InputError(str(scenario.latencies), at="client", problem=problem, remedy="remove `client`")
    if scenario.engine == BATSIM_ENGINE:
        from batkube.batsim.engine.connection import require_batsim

        require_batsim(scenario.platform)


def fluid_model_of(
    workloads: Sequence[Workload], platform: Platform, model: ResourceModel, *, has_energy: bool
) -> FluidModel | None:
    """Return the fluid model, or None if jobs do not affect each other and no energy is accounted for."""
    profiles = {id(job.profile): job.profile for job in jobs_of(workloads)}
    alone = model is ResourceModel.MACHINES
    if not has_energy and all(is_delay(profile) or (alone and only_computes(profile)) for profile in profiles.values()):
        return None
    from batkube.execution.profiles.fluid_model import FluidModel

    fluid_model = FluidModel(platform, {workload.name: Path(workload.source) for workload in workloads})
    if has_energy:
        from batkube.execution.energy.log import EnergyLog

        EnergyLog.of_platform(platform, fluid_model.new_platform())  # raises InputError before anything is written
    return fluid_model


def _prerequisites(outside: Sequence[ExternalProgram], platform: Platform, model: ResourceModel) -> Prerequisites:
    """Return the objects that must exist before the external programs start."""
    if not outside:
        return ()
    from batkube.programs.selection.prerequisites import prerequisites_of

    return prerequisites_of(outside, platform.machines, model)


def _resource_model(scenario: Scenario, workloads: Iterable[Workload]) -> ResourceModel:
    if scenario.resources is not Resources.AUTO:
        return ResourceModel(scenario.resources.value)
    return resource_model_of(workloads)


def resource_model_of(workloads: Iterable[Workload]) -> ResourceModel:
    """Return the default resource model: by requests if any job has some, else whole machines."""
    jobs = jobs_of(workloads)
    return ResourceModel.REQUESTS if not jobs or any(job.requests for job in jobs) else ResourceModel.MACHINES
