"""A scenario: the full description of one run.

It comes from the command line, from keyword arguments, or from a YAML file whose keys are the fields below with dashes;
paths in a file are relative to that file. What is given twice is taken from the more specific place: option over file.
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

#: What a run writes unless told otherwise, and can do without. What is left is its results: jobs.csv, schedule.csv,
#: what to be wary of, and the manifest.
OPTIONAL_OUTPUTS = ("pods.csv", "machine_states.csv", "journal.jsonl")


class Resources(enum.StrEnum):
    """Which resource model a run uses."""

    AUTO = "auto"  # requests when any job states cpu, memory or other requests, machines otherwise
    MACHINES = "machines"
    REQUESTS = "requests"


class OnEviction(enum.StrEnum):
    """What becomes of a job that is stopped to make room."""

    RESUBMIT = "resubmit"  # it is queued again and starts over
    FAIL = "fail"  # it ends as COMPLETED_KILLED


class OnFailure(enum.StrEnum):
    """What becomes of a job of which a pod was lost because its node failed or is gone."""

    RESUBMIT = "resubmit"  # it is queued again and starts over
    FAIL = "fail"  # it ends as COMPLETED_FAILED


class OnDeadlock(enum.StrEnum):
    """What becomes of a run in which half-started jobs wait for one another for good."""

    FAIL = "fail"  # it ends at once
    WAIT = "wait"  # it goes on as long as there is anything to wait for


@dataclass(frozen=True, slots=True)
class Scenario:
    """The full description of one run."""

    #: Files, and workloads that the run makes for itself.
    workloads: tuple[Path | WorkloadRecipe, ...]
    platform: str
    scheduler: str = "policy:fcfs"
    scheduler_args: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    time: TimeRules = EXACT
    resources: Resources = Resources.AUTO
    latencies: Path | None = None
    #: What containers do, by their image or pod.
    rules: Path | None = None
    on_eviction: OnEviction = OnEviction.RESUBMIT
    on_failure: OnFailure = OnFailure.RESUBMIT
    on_deadlock: OnDeadlock = OnDeadlock.FAIL
    #: What jobs are to their scheduler (`cluster.submission_forms`): bare pods, PodGroups, …; None for what it wants.
    submit_as: SubmissionForm | None = None
    #: What happens to the cluster meanwhile: an events file, or its entries.
    events: Path | tuple[object, ...] = ()
    #: Where such entries stand, for messages.
    events_source: str = "scenario"
    #: The configuration file of an outside scheduler, handed to it untouched.
    scheduler_config: Path | None = None
    #: Whether an outside scheduler runs such that the same scenario gives the same bytes.
    deterministic: bool = True
    #: `zero`, `measured` or `model:CONSTANT[,PER-NODE[,PER-PENDING-POD]]`: how long a decision takes (`timing.costs`).
    decision_cost: str = ZERO
    #: In virtual time: when nothing is due and an outside scheduler does nothing for so long, the run is given up.
    patience: Duration = PATIENCE
    #: In real time: an outside scheduler that does not become idle for so long is stuck.
    watchdog: Duration = WATCHDOG
    #: More outside schedulers, `NAME=SCHEDULER` each, for the jobs that ask for them by name.
    more_schedulers: tuple[str, ...] = ()
    #: Which share of the jobs that ask for no scheduler by name each of those gets, by lot; the main one has the rest.
    shares: Mapping[str, float] = field(default_factory=dict)
    #: Programs that share the run's clock beside its schedulers, each with its arguments: `./descheduler --dry-run`.
    attach: tuple[str, ...] = ()
    #: More programs by name, beside those of the catalogue.
    catalogue: Path | None = None
    #: Who looks after objects: `ours`, `none` or `kube-controller-manager@1.34.4`, on the run's clock, with its
    #: arguments; None for ours where a workload has any.
    controllers: str | None = None
    #: Versions of the API that are off by default, and served in this run: `admissionregistration.k8s.io/v1beta1`.
    api: tuple[str, ...] = ()
    #: Whether the energy of machines and jobs is counted.
    energy: bool = False
    #: Who lets jobs arrive and executes them: None for ourselves, `batsim` or `batsim:ENDPOINT` for a real Batsim.
    engine: str | None = None
    #: In virtual time: when the run ends, whatever has not ended by then.
    until: Duration | None = None
    #: How often what schedulers believe is compared with what is so; None for never.
    audit: Duration | None = None
    #: What of the beginning and of the end of a run does not count in its means.
    warm_up: Trim = NO_TRIM
    cool_down: Trim = NO_TRIM
    #: In real time: a run that is not over after so long is stopped. It has no part in the results of one that is.
    time_limit: Duration | None = None
    #: What is done to an outside program and its connections in real time, to show that results do not depend on it.
    disturb: tuple[Disturbance, ...] = ()
    #: Which files a run writes of those that it can do without.
    outputs: tuple[str, ...] = OPTIONAL_OUTPUTS

    @property
    def resubmits_evicted(self) -> bool:
        """Whether jobs that were evicted are queued again."""
        return self.on_eviction is OnEviction.RESUBMIT and not self._uses_batsim

    @property
    def resubmits_lost(self) -> bool:
        """Whether jobs whose node failed are queued again."""
        return self.on_failure is OnFailure.RESUBMIT and not self._uses_batsim

    @property
    def _uses_batsim(self) -> bool:
        """Whether a Batsim or a scheduler of its protocol takes part: Batsim knows no second try of a job."""
        return self.engine is not None or self.scheduler.startswith(BATSIM_PREFIX)

    @property
    def left_out(self) -> list[str]:
        """The files that a run of this scenario does not write, though it could."""
        return [name for name in OPTIONAL_OUTPUTS if name not in self.outputs]

    @property
    def controller_manager(self) -> str | None:
        """The command line of the program that looks after objects, if one does."""
        return None if self.controllers in (None, OUR_CONTROLLERS, NO_CONTROLLERS) else self.controllers

    @property
    def is_outside(self) -> bool:
        """Whether the scheduler is a program of its own rather than a policy of ours."""
        return not self.scheduler.startswith(IN_PROCESS_PREFIXES)

    @property
    def input_files(self) -> list[Path]:
        """The files that a run of this scenario reads; programs are not among them."""
        platform = Path(self.platform) if is_file_spec(self.platform) else None
        events = self.events if isinstance(self.events, Path) else None
        policy = policy_file(self.scheduler)
        maybe = (platform, self.latencies, self.rules, policy, self.scheduler_config, self.catalogue, events)
        workloads = (one.trace if isinstance(one, WorkloadRecipe) else one for one in self.workloads)
        return [path for path in (*workloads, *maybe) if path is not None]

    def describe(self) -> dict[str, object]:
        """Return the scenario as the keys of a scenario file, as the manifest holds it."""
        return {
            "workload": [dict(one.options) if isinstance(one, WorkloadRecipe) else str(one) for one in self.workloads],
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
            "energy": self.energy,
            "engine": self.engine,
            "until": None if self.until is None else format_seconds(self.until),
            "audit": None if self.audit is None else format_seconds(self.audit),
            "warm-up": self.warm_up.text or None,
            "cool-down": self.cool_down.text or None,
            TIME_LIMIT_KEY: None if self.time_limit is None else format_seconds(self.time_limit),
            "disturb": [one.value for one in self.disturb],
            "outputs": list(self.outputs),
        }


#: The key of a scenario that says how long it may take, and nothing of what it is.
TIME_LIMIT_KEY = "time-limit"
#: What `controllers` may be.
OUR_CONTROLLERS, NO_CONTROLLERS, CONTROLLER_MANAGER = "ours", "none", "kube-controller-manager"
CONTROLLERS_REMEDY = f"one of {OUR_CONTROLLERS}, {NO_CONTROLLERS}, {CONTROLLER_MANAGER}@1.34.4"
#: What tells an in-process policy from an outside program in `--scheduler`.
POLICY_PREFIX = "policy:"
#: And a scheduler that speaks Batsim's protocol: no program of the Kubernetes API, it decides as a policy does.
BATSIM_PREFIX = "batsim:"
#: What `engine` may be, alone or with an endpoint after a colon.
BATSIM_ENGINE = "batsim"
#: What begins the names of schedulers that decide within the simulation.
IN_PROCESS_PREFIXES = (POLICY_PREFIX, BATSIM_PREFIX)


def policy_file(scheduler: str) -> Path | None:
    """Return the user's own file that `policy:FILE:CLASS` names; None for a built-in policy."""
    name = scheduler.removeprefix(POLICY_PREFIX)
    if name == scheduler:
        return None
    path = name if name.endswith(".py") else name.rpartition(":")[0]
    return Path(path) if path else None
