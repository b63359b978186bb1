"""A scenario: the full description of one run.

It comes from the command line, from keyword arguments, or from a YAML file whose keys are the fields below with dashes.
Paths in a file are relative to that file. An option of the command line overrides the file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from batkube.cluster.jobs.submission_forms import SubmissionForm
from batkube.kernel.instants import Duration, format_seconds
from batkube.kernel.measured_window import NO_TRIM, Trim
from batkube.platforms.reader import is_file_spec
from batkube.scenarios.disturbances import Disturbance
from batkube.timing.costs import ZERO
from batkube.timing.time_rules import EXACT, TimeRules
from batkube.timing.timeouts import PATIENCE, WATCHDOG
from batkube.workloads.synthetic.recipes import WorkloadRecipe

#: The files that `outputs` can omit. A run always writes jobs.csv, schedule.csv, fidelity.json and manifest.json.
OPTIONAL_OUTPUTS = ("pods.csv", "machine_states.csv", "journal.jsonl")


class Resources(enum.StrEnum):
    """The resource model of a run."""

    AUTO = "auto"  # requests if any job requests cpu, memory or other resources, else machines
    MACHINES = "machines"
    REQUESTS = "requests"


class OnEviction(enum.StrEnum):
    """The consequence for a job whose pod is evicted or preempted."""

    RESUBMIT = "resubmit"  # it is queued again and starts over
    FAIL = "fail"  # it ends as COMPLETED_KILLED


class OnFailure(enum.StrEnum):
    """The consequence for a job that lost a pod because its node failed or was removed."""

    RESUBMIT = "resubmit"  # it is queued again and starts over
    FAIL = "fail"  # it ends as COMPLETED_FAILED


class OnDeadlock(enum.StrEnum):
    """The consequence for a run in which partly started jobs wait for each other forever."""

    FAIL = "fail"  # it ends at once
    WAIT = "wait"  # it continues as long as any event is due


@dataclass(frozen=True, slots=True)
class Scenario:
    """The full description of one run."""

    #: Paths of files, and recipes of generated workloads.
    workloads: tuple[Path | WorkloadRecipe, ...]
    platform: str
    scheduler: str = "policy:fcfs"
    scheduler_args: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    time: TimeRules = EXACT
    resources: Resources = Resources.AUTO
    latencies: Path | None = None
    #: A rules file: the behaviour of containers by image or pod.
    rules: Path | None = None
    on_eviction: OnEviction = OnEviction.RESUBMIT
    on_failure: OnFailure = OnFailure.RESUBMIT
    on_deadlock: OnDeadlock = OnDeadlock.FAIL
    #: The form of jobs (`cluster.jobs.submission_forms`): bare pods, PodGroups, …; None for the scheduler's default.
    submit_as: SubmissionForm | None = None
    #: The timeline of the cluster: an events file, or its entries.
    events: Path | tuple[object, ...] = ()
    #: The file that contains these entries, for messages.
    events_source: str = "scenario"
    #: The configuration file of an external scheduler, passed to it unchanged.
    scheduler_config: Path | None = None
    #: Whether two runs with an external scheduler must give the same bytes.
    deterministic: bool = True
    #: The virtual time of a decision: `zero`, `measured` or `model:CONSTANT[,PER-NODE[,PER-PENDING-POD]]`.
    decision_cost: str = ZERO
    #: In virtual time: the run fails if nothing is due and an external scheduler does nothing for this long.
    patience: Duration = PATIENCE
    #: In real time: an external scheduler that does not become idle for this long is stuck.
    watchdog: Duration = WATCHDOG
    #: Additional external schedulers, each `NAME=SCHEDULER`, for the jobs that request them by name.
    more_schedulers: tuple[str, ...] = ()
    #: The share of the jobs without a requested scheduler for each additional one, chosen at random.
    shares: Mapping[str, float] = field(default_factory=dict)
    #: Further programs that share the clock, each with its arguments: `./descheduler --dry-run`.
    attach: tuple[str, ...] = ()
    #: A file that adds programs to the catalogue.
    catalogue: Path | None = None
    #: `ours`, `none` or `kube-controller-manager@1.34.4` with its arguments; None for ours if the workload has objects.
    controllers: str | None = None
    #: API versions that are off by default but served in this run: `admissionregistration.k8s.io/v1beta1`.
    api: tuple[str, ...] = ()
    #: The version of Kubernetes whose API is served; None for that which the programs need.
    kubernetes: str | None = None
    #: Whether the energy of machines and jobs is measured.
    energy: bool = False
    #: The engine that submits and executes jobs: None for Batkube, `batsim` or `batsim:ENDPOINT` for a real Batsim.
    engine: str | None = None
    #: In virtual time: the end of the run, even if jobs have not ended.
    until: Duration | None = None
    #: The interval at which the state of schedulers is compared with the cluster; None for never.
    audit: Duration | None = None
    #: Whether the reasons of schedulers are recorded, for `batkube explain`.
    explain: bool = False
    #: The beginning and the end of a run that its means exclude.
    warm_up: Trim = NO_TRIM
    cool_down: Trim = NO_TRIM
    #: In real time: a run that takes longer is stopped. It does not affect the results of a run that ends before.
    time_limit: Duration | None = None
    #: Disturbances of external programs and connections in real time, which must not change the results.
    disturb: tuple[Disturbance, ...] = ()
    #: The optional files that a run writes.
    outputs: tuple[str, ...] = OPTIONAL_OUTPUTS

    @property
    def resubmits_evicted(self) -> bool:
        """Whether evicted jobs are queued again."""
        return self.on_eviction is OnEviction.RESUBMIT and not self._uses_batsim

    @property
    def resubmits_lost(self) -> bool:
        """Whether jobs that lost a node are queued again."""
        return self.on_failure is OnFailure.RESUBMIT and not self._uses_batsim

    @property
    def _uses_batsim(self) -> bool:
        """Whether the run uses a Batsim, or a scheduler of its protocol. Batsim cannot resubmit a job."""
        return self.engine is not None or self.scheduler.startswith(BATSIM_PREFIX)

    @property
    def omitted_outputs(self) -> list[str]:
        """The optional files that the run does not write."""
        return [name for name in OPTIONAL_OUTPUTS if name not in self.outputs]

    @property
    def controller_manager(self) -> str | None:
        """The command line of the kube-controller-manager, if one is used."""
        return None if self.controllers in (None, OUR_CONTROLLERS, NO_CONTROLLERS) else self.controllers

    @property
    def has_external_scheduler(self) -> bool:
        """Whether the scheduler is an external program and not a policy."""
        return not self.scheduler.startswith(IN_PROCESS_PREFIXES)

    @property
    def input_files(self) -> list[Path]:
        """The files that the run reads, without programs."""
        platform = Path(self.platform) if is_file_spec(self.platform) else None
        events = self.events if isinstance(self.events, Path) else None
        policy = policy_file(self.scheduler)
        others = (platform, self.latencies, self.rules, policy, self.scheduler_config, self.catalogue, events)
        workloads = (source.trace if isinstance(source, WorkloadRecipe) else source for source in self.workloads)
        return [path for path in (*workloads, *others) if path is not None]

    def describe(self) -> dict[str, object]:
        """Return the scenario by the keys of a scenario file, for the manifest."""
        return {
            "workload": [
                dict(source.options) if isinstance(source, WorkloadRecipe) else str(source) for source in self.workloads
            ],
            "platform": self.platform,
            "scheduler": [self.scheduler, *self.more_schedulers] if self.more_schedulers else self.scheduler,
            "scheduler-args": dict(self.scheduler_args),
            "seed": self.seed,
            "time": self.time.describe(),
            "resources": self.resources.value,
            "latencies": None if self.latencies is None else str(self.latencies),
            "rules": None if self.rules is None else str(self.rules),
            "on-eviction": self.on_eviction.value,
            "on-failure": self.on_failure.value,
            "on-deadlock": self.on_deadlock.value,
            "submit-as": None if self.submit_as is None else self.submit_as.value,
            "events": str(self.events) if isinstance(self.events, Path) else list(self.events),
            "scheduler-config": None if self.scheduler_config is None else str(self.scheduler_config),
            "deterministic": self.deterministic,
            "decision-cost": self.decision_cost,
            "patience": format_seconds(self.patience),
            "watchdog": format_seconds(self.watchdog),
            "shares": dict(self.shares),
            "attach": list(self.attach),
            "catalogue": None if self.catalogue is None else str(self.catalogue),
            "controllers": self.controllers,
            "api": list(self.api),
            "kubernetes": self.kubernetes,
            "energy": self.energy,
            "engine": self.engine,
            "until": None if self.until is None else format_seconds(self.until),
            "audit": None if self.audit is None else format_seconds(self.audit),
            "explain": self.explain,
            "warm-up": self.warm_up.text or None,
            "cool-down": self.cool_down.text or None,
            TIME_LIMIT_KEY: None if self.time_limit is None else format_seconds(self.time_limit),
            "disturb": [disturbance.value for disturbance in self.disturb],
            "outputs": list(self.outputs),
        }


#: The key that limits the real time of a run; it does not affect the results.
TIME_LIMIT_KEY = "time-limit"
#: The values of `controllers`.
OUR_CONTROLLERS, NO_CONTROLLERS, CONTROLLER_MANAGER = "ours", "none", "kube-controller-manager"
CONTROLLERS_REMEDY = f"one of {OUR_CONTROLLERS}, {NO_CONTROLLERS}, {CONTROLLER_MANAGER}@1.34.4"
#: The prefix of a policy in `--scheduler`.
POLICY_PREFIX = "policy:"
#: The prefix of a scheduler that speaks Batsim's protocol. It has no Kubernetes client, and is called like a policy.
BATSIM_PREFIX = "batsim:"
#: The value of `engine`, alone or with an endpoint after a colon.
BATSIM_ENGINE = "batsim"
#: The prefixes of schedulers that the simulation calls directly.
IN_PROCESS_PREFIXES = (POLICY_PREFIX, BATSIM_PREFIX)


def policy_file(scheduler: str) -> Path | None:
    """Return the file in `policy:FILE:CLASS`; None for a built-in policy."""
    name = scheduler.removeprefix(POLICY_PREFIX)
    if name == scheduler:
        return None
    path = name if name.endswith(".py") else name.rpartition(":")[0]
    return Path(path) if path else None
