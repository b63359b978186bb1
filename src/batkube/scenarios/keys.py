"""Parse the keys of a scenario, and check their values and combinations."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from batkube.cluster.jobs.submission_forms import SubmissionForm
from batkube.cluster.kinds import KUBERNETES_VERSIONS, validate_kubernetes, validate_versions
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, duration
from batkube.kernel.measured_window import NO_TRIM, TRIM_FORMATS, Trim, parse_trim
from batkube.scenarios.disturbances import parse_disturbances
from batkube.scenarios.scenario import (
    BATSIM_ENGINE,
    BATSIM_PREFIX,
    CONTROLLER_MANAGER,
    CONTROLLERS_REMEDY,
    IN_PROCESS_PREFIXES,
    NO_CONTROLLERS,
    OPTIONAL_OUTPUTS,
    OUR_CONTROLLERS,
    TIME_LIMIT_KEY,
    OnDeadlock,
    OnEviction,
    OnFailure,
    Resources,
    Scenario,
)
from batkube.timing.costs import ZERO, parse_cost
from batkube.timing.time_rules import InvalidTimeRules, TimeMode, TimeRules, parse_time
from batkube.timing.timeouts import PATIENCE, WATCHDOG
from batkube.workloads.synthetic.recipes import RecipeSource, WorkloadRecipe, parse_recipe

_Choice = TypeVar("_Choice", bound=enum.StrEnum)
_Default = TypeVar("_Default", bound=Duration | None)

#: The keys that every scenario must have.
REQUIRED = ("workload", "platform")
_FIELDS_WITHOUT_KEY = ("workloads", "more_schedulers", "events_source")
KEYS = (
    "workload",
    *(field.name.replace("_", "-") for field in fields(Scenario) if field.name not in _FIELDS_WITHOUT_KEY),
)


def as_list(value: object) -> list[object]:
    """Return a list as it is, and any other value as a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


_NAME_AND_SCHEDULER = re.compile(r"([a-z0-9][a-z0-9.-]*)=(.+)")


def split_scheduler(text: str) -> tuple[str, str]:
    """Return the two parts of `NAME=SCHEDULER`; the name is "" if it is absent."""
    match = _NAME_AND_SCHEDULER.fullmatch(text)
    return (match[1], match[2]) if match else ("", text)


def make_scenario(values: Mapping[str, object], source: str | Path) -> Scenario:
    """Return the scenario with these values, by the keys of a scenario file; error messages name `source`."""
    for required in REQUIRED:
        if not values.get(required):
            raise InputError(source, problem=f"has no {required}", remedy=f"add --{required}")
    seed = values.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InputError(source, at="seed", problem=f"{seed!r} is not an integer")
    arguments = values.get("scheduler-args") or {}
    if not isinstance(arguments, Mapping):
        raise InputError(source, at="scheduler-args", problem="is not a mapping of names to values")
    deterministic, energy, explain = (_boolean(values, key, source) for key in ("deterministic", "energy", "explain"))
    scheduler, *more = _schedulers(values, source)
    kubernetes = None if values.get("kubernetes") is None else validate_kubernetes(str(values["kubernetes"]), source)
    time = _time(values, scheduler, source)
    return Scenario(
        workloads=tuple(_workload_source(value, source) for value in as_list(values["workload"])),
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
        submit_as=_submission_form(values, scheduler, source),
        events=_events(values.get("events"), source),
        events_source=str(source),
        scheduler_config=_path(values, "scheduler-config"),
        deterministic=time.mode is TimeMode.EXACT and deterministic is not False,
        decision_cost=_decision_cost(values, source),
        patience=_duration(values, "patience", PATIENCE, source),
        watchdog=_duration(values, "watchdog", WATCHDOG, source),
        more_schedulers=tuple(more),
        shares=_shares(values.get("shares"), [split_scheduler(text)[0] for text in more], source),
        attach=_attached_programs(values, scheduler, source),
        catalogue=_path(values, "catalogue"),
        controllers=_controllers(values, scheduler, source),
        # If programs choose the version of Kubernetes, the versions of groups are validated again when it is known.
        api=validate_versions(
            [str(version) for version in as_list(values.get("api") or [])],
            source,
            "api",
            kubernetes or KUBERNETES_VERSIONS[-1],
        ),
        kubernetes=kubernetes,
        until=_duration(values, "until", None, source),
        audit=_duration(values, "audit", None, source),
        energy=energy is True,
        explain=explain is True,
        engine=_engine(values, scheduler, time, source),
        warm_up=_trim(values, "warm-up", source),
        cool_down=_trim(values, "cool-down", source),
        time_limit=_duration(values, TIME_LIMIT_KEY, None, source),
        disturb=parse_disturbances(
            as_list(values.get("disturb") or []),
            can_disturb=time.mode is TimeMode.EXACT and not scheduler.startswith(IN_PROCESS_PREFIXES),
            source=source,
        ),
        outputs=_outputs(values.get("outputs"), source),
    )


def _outputs(value: object, source: str | Path) -> tuple[str, ...]:
    """Return the optional files to write: `all`, `none`, or names such as `pods,journal.jsonl`, also as a list."""
    names = [name.strip() for item in as_list(value) for name in str(item).split(",")]
    if value is None or names == ["all"]:
        return OPTIONAL_OUTPUTS
    stems = {name.partition(".")[0]: name for name in OPTIONAL_OUTPUTS}
    selected = [] if names == ["none"] else [name.partition(".")[0] for name in names if name]
    for stem in selected:
        if stem not in stems:
            remedy = f"all, none, or some of {', '.join(OPTIONAL_OUTPUTS)}; the other files are always written"
            raise InputError(source, at="outputs", problem=f"{stem!r} is not an optional output", remedy=remedy)
    return tuple(name for stem, name in stems.items() if stem in selected)


def _workload_source(value: object, source: str | Path) -> Path | WorkloadRecipe:
    """Return the path of a workload, or the recipe from which it is generated."""
    if value == "-":
        problem = "standard input cannot be read again, so the run would not be repeatable"
        raise InputError(source, at="workload", problem=problem, remedy="write it to a file first")
    if not isinstance(value, Mapping):
        return Path(str(value))
    return parse_recipe(value, RecipeSource(str(source)))


def _engine(values: Mapping[str, object], scheduler: str, time: TimeRules, source: str | Path) -> str | None:
    """Return the engine that executes jobs instead of Batkube; reject keys that it does not support."""
    if values.get("engine") is None:
        return None
    text = str(values["engine"])
    name, colon, endpoint = text.partition(":")
    if name != BATSIM_ENGINE or (colon and not endpoint.startswith(("tcp://", "ipc://"))):
        remedy = f"write {BATSIM_ENGINE}, or {BATSIM_ENGINE}:tcp://127.0.0.1:28000"
        raise InputError(source, at="engine", problem=f"{text!r} is not an engine", remedy=remedy)
    if scheduler.startswith(BATSIM_PREFIX):
        problem = "a scheduler that speaks Batsim's protocol can connect to Batsim directly"
        raise InputError(source, at="engine", problem=problem, remedy="start Batsim with it, without Batkube")
    if time.mode is not TimeMode.EXACT:
        problem = f"Batsim does not support {time.mode} time"
        raise InputError(source, at="engine", problem=problem, remedy="use exact time")
    if values.get("energy"):
        problem = "cannot be measured here, since Batsim executes the jobs"
        raise InputError(source, at="energy", problem=problem, remedy="start Batsim with -E, and omit it here")
    return text


def _boolean(values: Mapping[str, object], key: str, source: str | Path) -> bool | None:
    value = values.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(source, at=key, problem=f"{value!r} is neither true nor false")
    return value


def _submission_form(values: Mapping[str, object], scheduler: str, source: str | Path) -> SubmissionForm | None:
    """Return the form in which jobs are submitted; None for the default. Policies only support pods."""
    if values.get("submit-as") is None:
        return None
    form = _choice(SubmissionForm, values, "submit-as", source)
    if form is not SubmissionForm.PODS and scheduler.startswith(IN_PROCESS_PREFIXES):
        problem = f"{scheduler} does not support jobs as {form.value!r}"
        raise InputError(source, at="submit-as", problem=problem, remedy="omit it, or use a real scheduler")
    return form


def _controllers(values: Mapping[str, object], scheduler: str, source: str | Path) -> str | None:
    """Return the controllers of a run. A controller manager requires an external scheduler, as `attach` does."""
    choice = values.get("controllers")
    if choice is None or choice in (OUR_CONTROLLERS, NO_CONTROLLERS):
        return None if choice is None else str(choice)
    if not is_controller_manager(str(choice)):
        problem = f"{choice!r} is not a choice of controllers"
        raise InputError(source, at="controllers", problem=problem, remedy=CONTROLLERS_REMEDY)
    if scheduler.startswith(IN_PROCESS_PREFIXES):
        raise _not_attachable_error(source, "controllers", scheduler)
    return str(choice)


def is_controller_manager(text: str) -> bool:
    """Return whether a command line starts a kube-controller-manager, by the name of its program."""
    program = text.partition(" ")[0]
    return program.rpartition("/")[2].partition("@")[0] == CONTROLLER_MANAGER


def _attached_programs(values: Mapping[str, object], scheduler: str, source: str | Path) -> tuple[str, ...]:
    """Return the programs to attach. They require an external scheduler, with which they share the clock."""
    programs = tuple(str(command) for command in as_list(values.get("attach") or []))
    if programs and scheduler.startswith(IN_PROCESS_PREFIXES):
        raise _not_attachable_error(source, "attach", scheduler)
    return programs


def _not_attachable_error(source: str | Path, key: str, scheduler: str) -> InputError:
    problem = f"{scheduler} runs inside the simulation, where no program can be attached"
    return InputError(source, at=key, problem=problem, remedy="use a real scheduler, such as kube-scheduler")


def _time(values: Mapping[str, object], scheduler: str, source: str | Path) -> TimeRules:
    """Return the rules of time. A mode that follows the real time is neither repeatable nor useful for a policy."""
    try:
        rules = parse_time(values.get("time") or TimeMode.EXACT)
    except InvalidTimeRules as error:
        raise InputError(source, at="time", problem=str(error), remedy=error.remedy) from error
    if rules.mode is TimeMode.EXACT:
        return rules
    reason = f"{rules.mode} time follows the real time"
    if scheduler.startswith(IN_PROCESS_PREFIXES):
        raise InputError(source, at="time", problem=f"{reason}, which {scheduler} does not use", remedy="omit it")
    if values.get("deterministic"):
        raise InputError(source, at="deterministic", problem=f"{reason}, so runs differ", remedy="omit it")
    if (values.get("decision-cost") or ZERO) != ZERO:
        problem = f"{reason}, which includes the real cost of decisions"
        raise InputError(source, at="decision-cost", problem=problem, remedy="use zero")
    return rules


def _schedulers(values: Mapping[str, object], source: str | Path) -> list[str]:
    """Return the run's schedulers, the main one first."""
    schedulers = [str(text) for text in as_list(values.get("scheduler") or "policy:fcfs")]
    policies = [text for text in schedulers if split_scheduler(text)[1].startswith(IN_PROCESS_PREFIXES)]
    if policies and (len(schedulers) > 1 or split_scheduler(policies[0])[0]):
        raise InputError(
            source,
            at="scheduler",
            problem="a policy schedules all jobs of a run, whatever scheduler they name",
            remedy=f"write only --scheduler {split_scheduler(policies[0])[1]}",
        )
    names = [split_scheduler(scheduler)[0] for scheduler in schedulers[1:]]
    if "" in names or len(set(names)) < len(names):
        raise InputError(
            source,
            at="scheduler",
            problem="every scheduler after the first needs a name of its own",
            remedy="write NAME=SCHEDULER, and set NAME as the scheduler of jobs in the workload",
        )
    return schedulers


def _shares(shares: object, names: Sequence[str], source: str | Path) -> dict[str, float]:
    """Return the share of the jobs for each additional scheduler, from a mapping or a text such as `NAME=30%,…`."""
    remedy = "write shares such as 0.3 or 30% by the NAMEs of additional schedulers, NAME=SCHEDULER, in total at most 1"
    if isinstance(shares, str):
        shares = {name: text for name, _, text in (part.partition("=") for part in shares.split(","))}
    if not isinstance(shares, Mapping | None):
        raise InputError(source, at="shares", problem=f"{shares!r} is not a mapping of names to shares", remedy=remedy)
    parsed: dict[str, float] = {}
    for name, text in (shares or {}).items():
        share = _parse_share(str(text))
        if name not in names:
            problem = f"there is no additional scheduler {name!r}"
            raise InputError(source, at="shares", problem=problem, remedy=remedy)
        if share is None:
            raise InputError(source, at=f"shares.{name}", problem=f"{text!r} is not a share", remedy=remedy)
        parsed[str(name)] = share
    if sum(parsed.values()) > 1:
        problem = f"the sum is {sum(parsed.values()):g}, which is above 1"
        raise InputError(source, at="shares", problem=problem, remedy=remedy)
    return parsed


def _parse_share(text: str) -> float | None:
    """Parse a share from 0 to 1, or a percentage; return None for any other text."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _decision_cost(values: Mapping[str, object], source: str | Path) -> str:
    text = str(values.get("decision-cost") or ZERO)
    try:
        parse_cost(text)
    except ValueError as error:
        remedy = "zero, measured, or model:CONSTANT,PER-NODE,PER-PENDING-POD such as model:5ms,10us"
        raise InputError(source, at="decision-cost", problem=str(error), remedy=remedy) from error
    return text


def _duration(values: Mapping[str, object], key: str, default: _Default, source: str | Path) -> Duration | _Default:
    text = values.get(key)
    if text is None:
        return default
    try:
        length = duration(str(text))
    except ValueError as error:
        raise InputError(source, at=key, problem=str(error)) from error
    if length <= 0:
        raise InputError(source, at=key, problem=f"{text} is not a positive duration")
    return length


def _trim(values: Mapping[str, object], key: str, source: str | Path) -> Trim:
    text = values.get(key)
    try:
        return NO_TRIM if text is None else parse_trim(str(text))
    except ValueError as error:
        raise InputError(source, at=key, problem=str(error), remedy=f"write {TRIM_FORMATS}") from error


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


def _choice(choices: type[_Choice], values: Mapping[str, object], key: str, source: str | Path) -> _Choice:
    """Return the choice of a key; the first choice is the default."""
    value = str(values.get(key) or next(iter(choices)))
    if value not in list(choices):
        raise InputError(source, at=key, problem=f"{value!r} is unknown", remedy=f"use one of {', '.join(choices)}")
    return choices(value)
