"""A scenario: the full description of one run.

It comes from the command line, from keyword arguments, or from a YAML file whose keys are the fields below with dashes;
paths in a file are relative to that file. What is given twice is taken from the more specific place: option over file.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from batkube.cluster.forms import SubmissionForm
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, duration, format_seconds
from batkube.platforms.reading import names_file
from batkube.timing.coordinator import PATIENCE, WATCHDOG
from batkube.timing.costs import ZERO, parse_cost
from batkube.timing.paced_text import EXACT, TimeMode, TimeRules, WrongTime, parse_time


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

    workloads: tuple[Path, ...]
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
    #: What jobs are to their scheduler (`cluster.forms`): bare pods, PodGroups, …; None for what it wants.
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
    #: Programs that share the run's clock beside its schedulers, each with its arguments: `./descheduler --dry-run`.
    attach: tuple[str, ...] = ()
    #: Who looks after objects: `ours`, `none` or `kube-controller-manager@1.34.4`, on the run's clock, with its
    #: arguments; None for ours where a workload has any.
    controllers: str | None = None
    #: In virtual time: when the run ends, whatever has not ended by then.
    until: Duration | None = None
    #: In real time: a run that is not over after so long is stopped. It has no part in the results of one that is.
    time_limit: Duration | None = None

    @property
    def controller_manager(self) -> str | None:
        """The command line of the program that looks after objects, if one does."""
        return None if self.controllers in (None, OUR_CONTROLLERS, NO_CONTROLLERS) else self.controllers

    @property
    def is_outside(self) -> bool:
        """Whether the scheduler is a program of its own rather than a policy of ours."""
        return not self.scheduler.startswith(POLICY_PREFIX)

    @property
    def input_files(self) -> list[Path]:
        """The files that a run of this scenario reads; programs are not among them."""
        platform = Path(self.platform) if names_file(self.platform) else None
        events = self.events if isinstance(self.events, Path) else None
        maybe = (platform, self.latencies, self.rules, policy_file(self.scheduler), self.scheduler_config, events)
        return [*self.workloads, *(path for path in maybe if path is not None)]

    def describe(self) -> dict[str, object]:
        """Return the scenario as the keys of a scenario file, as the manifest holds it."""
        return {
            "workload": [str(path) for path in self.workloads],
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
            "attach": list(self.attach),
            "controllers": self.controllers,
            "until": None if self.until is None else format_seconds(self.until),
            TIME_LIMIT: None if self.time_limit is None else format_seconds(self.time_limit),
        }


#: The key of a scenario that says how long it may take, and nothing of what it is.
TIME_LIMIT = "time-limit"
#: What `controllers` may be.
OUR_CONTROLLERS, NO_CONTROLLERS, CONTROLLER_MANAGER = "ours", "none", "kube-controller-manager"
CONTROLLERS_REMEDY = f"one of {OUR_CONTROLLERS}, {NO_CONTROLLERS}, {CONTROLLER_MANAGER}@1.34.4"
#: What tells an in-process policy from an outside program in `--scheduler`.
POLICY_PREFIX = "policy:"


def policy_file(scheduler: str) -> Path | None:
    """Return the user's own file that `policy:FILE:CLASS` names; None for a built-in policy."""
    name = scheduler.removeprefix(POLICY_PREFIX)
    if name == scheduler:
        return None
    path = name if name.endswith(".py") else name.rpartition(":")[0]
    return Path(path) if path else None


_Choices = TypeVar("_Choices", bound=enum.StrEnum)
_Default = TypeVar("_Default", bound=Duration | None)

#: The keys without which there is no run.
REQUIRED = ("workload", "platform")
_NO_KEYS = ("workloads", "more_schedulers", "events_source")
KEYS = ("workload", *(entry.name.replace("_", "-") for entry in fields(Scenario) if entry.name not in _NO_KEYS))


def listed(value: object) -> list[object]:
    """Return what may be given once or as a list, as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


_NAMED = re.compile(r"([a-z0-9][a-z0-9.-]*)=(.+)")


def named_scheduler(text: str) -> tuple[str, str]:
    """Return the two parts of `NAME=SCHEDULER`; the name is "" when there is none."""
    match = _NAMED.fullmatch(text)
    return (match[1], match[2]) if match else ("", text)


def make_scenario(values: Mapping[str, object], source: str | Path) -> Scenario:
    """Return the scenario of `values`, keyed as in a scenario file; `source` is named in error messages."""
    for required in REQUIRED:
        if not values.get(required):
            raise InputError(source, problem=f"no {required} given", remedy=f"add --{required}")
    given = values["workload"]
    seed = values.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InputError(source, at="seed", problem=f"{seed!r} is not a whole number")
    arguments = values.get("scheduler-args") or {}
    if not isinstance(arguments, Mapping):
        raise InputError(source, at="scheduler-args", problem="is not a mapping of names to values")
    deterministic = values.get("deterministic")
    if deterministic is not None and not isinstance(deterministic, bool):
        raise InputError(source, at="deterministic", problem=f"{deterministic!r} is neither true nor false")
    scheduler, *more = _schedulers(values, source)
    time = _time(values, scheduler, source)
    return Scenario(
        workloads=tuple(Path(str(one)) for one in (given if isinstance(given, list | tuple) else [given])),
        platform=str(values["platform"]),
        scheduler=scheduler,
        scheduler_args={str(name): str(value) for name, value in arguments.items()},
        seed=seed,
        time=time,
        resources=_choice(Resources, values, "resources", source),
        latencies=_path(values, "latencies"),
        rules=_path(values, "rules"),
        on_eviction=_choice(OnEviction, values, "on-eviction", source),
        on_failure=_choice(OnFailure, values, "on-failure", source),
        on_deadlock=_choice(OnDeadlock, values, "on-deadlock", source),
        submit_as=_form(values, scheduler, source),
        events=_events(values.get("events"), source),
        events_source=str(source),
        scheduler_config=_path(values, "scheduler-config"),
        deterministic=time.mode is TimeMode.EXACT and deterministic is not False,
        decision_cost=_decision_cost(values, source),
        patience=_duration(values, "patience", PATIENCE, source),
        watchdog=_duration(values, "watchdog", WATCHDOG, source),
        more_schedulers=tuple(more),
        attach=_attached(values, scheduler, source),
        controllers=_controllers(values, scheduler, source),
        until=_duration(values, "until", None, source),
        time_limit=_duration(values, TIME_LIMIT, None, source),
    )


def _form(values: Mapping[str, object], scheduler: str, source: str | Path) -> SubmissionForm | None:
    """Return what jobs are submitted as, if the scenario says so; a policy of ours knows jobs, and needs no such words."""
    if values.get("submit-as") is None:
        return None
    form = _choice(SubmissionForm, values, "submit-as", source)
    if form is not SubmissionForm.PODS and scheduler.startswith(POLICY_PREFIX):
        problem = f"{scheduler} does not know jobs as {form.value!r}"
        raise InputError(source, at="submit-as", problem=problem, remedy="leave it out, or use a real scheduler")
    return form


def _controllers(values: Mapping[str, object], scheduler: str, source: str | Path) -> str | None:
    """Return who looks after objects; a program can, where time is shared with one anyway."""
    chosen = values.get("controllers")
    if chosen is None or chosen in (OUR_CONTROLLERS, NO_CONTROLLERS):
        return None if chosen is None else str(chosen)
    if not is_controller_manager(str(chosen)):
        problem = f"{chosen!r} is not possible"
        raise InputError(source, at="controllers", problem=problem, remedy=CONTROLLERS_REMEDY)
    if scheduler.startswith(POLICY_PREFIX):
        raise _not_attachable(source, "controllers", scheduler)
    return str(chosen)


def is_controller_manager(text: str) -> bool:
    """Return whether a command line is that of a kube-controller-manager, by its name or path."""
    program = text.partition(" ")[0]
    return program.rpartition("/")[2].partition("@")[0] == CONTROLLER_MANAGER


def _attached(values: Mapping[str, object], scheduler: str, source: str | Path) -> tuple[str, ...]:
    """Return the programs to attach, which is possible only where time is shared with a program anyway."""
    given = tuple(str(one) for one in listed(values.get("attach") or []))
    if given and scheduler.startswith(POLICY_PREFIX):
        raise _not_attachable(source, "attach", scheduler)
    return given


def _not_attachable(source: str | Path, key: str, scheduler: str) -> InputError:
    problem = f"{scheduler} decides within the simulation, where nothing can be attached"
    return InputError(source, at=key, problem=problem, remedy="use a real scheduler, such as kube-scheduler")


def _time(values: Mapping[str, object], scheduler: str, source: str | Path) -> TimeRules:
    """Return how time moves; what follows the real time can neither be repeated nor be any use to a policy."""
    try:
        rules = parse_time(values.get("time") or TimeMode.EXACT)
    except WrongTime as error:
        raise InputError(source, at="time", problem=str(error), remedy=error.remedy) from error
    if rules.mode is TimeMode.EXACT:
        return rules
    follows = f"{rules.mode} time follows the real one"
    if scheduler.startswith(POLICY_PREFIX):
        raise InputError(
            source, at="time", problem=f"{follows}, and {scheduler} needs none to decide", remedy="leave it out"
        )
    if values.get("deterministic"):
        raise InputError(
            source, at="deterministic", problem=f"{follows}, so no two runs are the same", remedy="leave it out"
        )
    if (values.get("decision-cost") or ZERO) != ZERO:
        raise InputError(
            source, at="decision-cost", problem=f"{follows}, in which decisions take what they take", remedy="zero"
        )
    return rules


def _schedulers(values: Mapping[str, object], source: str | Path) -> list[str]:
    """Return the run's schedulers, the main one first."""
    given = values.get("scheduler") or "policy:fcfs"
    schedulers = [str(one) for one in given] if isinstance(given, list | tuple) else [str(given)]
    policies = [one for one in schedulers if named_scheduler(one)[1].startswith(POLICY_PREFIX)]
    if policies and (len(schedulers) > 1 or named_scheduler(policies[0])[0]):
        raise InputError(
            source,
            at="scheduler",
            problem="a policy schedules every job of a run, whatever scheduler a job names",
            remedy=f"write --scheduler {named_scheduler(policies[0])[1]} alone",
        )
    names = [named_scheduler(scheduler)[0] for scheduler in schedulers[1:]]
    if "" in names or len(set(names)) < len(names):
        raise InputError(
            source,
            at="scheduler",
            problem="several schedulers need a name each, from the second on",
            remedy="write NAME=SCHEDULER, and in the workload give jobs that scheduler's NAME",
        )
    return schedulers


def _decision_cost(values: Mapping[str, object], source: str | Path) -> str:
    text = str(values.get("decision-cost") or ZERO)
    try:
        parse_cost(text)
    except ValueError as error:
        remedy = "zero, measured, or model:CONSTANT,PER-NODE,PER-PENDING-POD such as model:5ms,10us"
        raise InputError(source, at="decision-cost", problem=str(error), remedy=remedy) from error
    return text


def _duration(values: Mapping[str, object], key: str, default: _Default, source: str | Path) -> Duration | _Default:
    given = values.get(key)
    if given is None:
        return default
    try:
        value = duration(str(given))
    except ValueError as error:
        raise InputError(source, at=key, problem=str(error)) from error
    if value <= 0:
        raise InputError(source, at=key, problem=f"{given} is not a length of time")
    return value


def _events(events: object, source: str | Path) -> Path | tuple[object, ...]:
    if isinstance(events, list | tuple):
        return tuple(events)
    if events is not None and not isinstance(events, str | Path):
        problem = f"{events!r} is neither a path nor a list of events"
        raise InputError(source, at="events", problem=problem, remedy="see `events` in docs/reference/events.md")
    return () if not events else Path(events)


def _path(values: Mapping[str, object], key: str) -> Path | None:
    value = values.get(key)
    return None if value is None else Path(str(value))


def _choice(kind: type[_Choices], values: Mapping[str, object], key: str, source: str | Path) -> _Choices:
    members = list(kind)
    value = str(values.get(key) or members[0].value)
    try:
        return kind(value)
    except ValueError:
        offered = ", ".join(member.value for member in members)
        raise InputError(source, at=key, problem=f"{value!r} is not possible", remedy=f"one of {offered}") from None
