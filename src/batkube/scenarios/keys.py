"""The keys of a scenario: what each may be, and which go together."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from batkube.cluster.jobs.submission_forms import SubmissionForm
from batkube.cluster.kinds import validate_versions
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

#: The keys without which there is no run.
REQUIRED = ("workload", "platform")
_FIELDS_WITHOUT_KEY = ("workloads", "more_schedulers", "events_source")
KEYS = (
    "workload",
    *(entry.name.replace("_", "-") for entry in fields(Scenario) if entry.name not in _FIELDS_WITHOUT_KEY),
)


def as_list(value: object) -> list[object]:
    """Return what may be given once or as a list, as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


_NAME_AND_SCHEDULER = re.compile(r"([a-z0-9][a-z0-9.-]*)=(.+)")


def split_scheduler(text: str) -> tuple[str, str]:
    """Return the two parts of `NAME=SCHEDULER`; the name is "" when there is none."""
    match = _NAME_AND_SCHEDULER.fullmatch(text)
    return (match[1], match[2]) if match else ("", text)


def make_scenario(values: Mapping[str, object], source: str | Path) -> Scenario:
    """Return the scenario of `values`, keyed as in a scenario file; `source` is named in error messages."""
    for required in REQUIRED:
        if not values.get(required):
            raise InputError(source, problem=f"no {required} given", remedy=f"add --{required}")
    seed = values.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InputError(source, at="seed", problem=f"{seed!r} is not a whole number")
    arguments = values.get("scheduler-args") or {}
    if not isinstance(arguments, Mapping):
        raise InputError(source, at="scheduler-args", problem="is not a mapping of names to values")
    deterministic, energy = (_boolean(values, key, source) for key in ("deterministic", "energy"))
    scheduler, *more = _schedulers(values, source)
    time = _time(values, scheduler, source)
    return Scenario(
        workloads=tuple(_workload_source(one, source) for one in as_list(values["workload"])),
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
        shares=_shares(values.get("shares"), [split_scheduler(one)[0] for one in more], source),
        attach=_attached_programs(values, scheduler, source),
        catalogue=_path(values, "catalogue"),
        controllers=_controllers(values, scheduler, source),
        api=validate_versions([str(one) for one in as_list(values.get("api") or [])], source, "api"),
        until=_duration(values, "until", None, source),
        audit=_duration(values, "audit", None, source),
        energy=energy is True,
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
    """Return which optional files are written: `pods,journal.jsonl`, a list of such, `all` or `none`."""
    names = [part.strip() for one in as_list(value) for part in str(one).split(",")]
    if value is None or names == ["all"]:
        return OPTIONAL_OUTPUTS
    stems = {name.partition(".")[0]: name for name in OPTIONAL_OUTPUTS}
    wanted = [] if names == ["none"] else [name.partition(".")[0] for name in names if name]
    for name in wanted:
        if name not in stems:
            remedy = f"all, none, or some of {', '.join(OPTIONAL_OUTPUTS)}; the other files are always written"
            raise InputError(source, at="outputs", problem=f"{name!r} is no file to choose", remedy=remedy)
    return tuple(name for stem, name in stems.items() if stem in wanted)


def _workload_source(value: object, source: str | Path) -> Path | WorkloadRecipe:
    """Return a workload's file, or how it is made."""
    if value == "-":
        problem = "standard input is gone once it is read, and a run must name what it can be repeated with"
        raise InputError(source, at="workload", problem=problem, remedy="write it to a file first")
    if not isinstance(value, Mapping):
        return Path(str(value))
    return parse_recipe(value, RecipeSource(str(source)))


def _engine(values: Mapping[str, object], scheduler: str, time: TimeRules, source: str | Path) -> str | None:
    """Return who executes jobs, if not we; what then is Batsim's business cannot be asked of us."""
    if values.get("engine") is None:
        return None
    text = str(values["engine"])
    name, colon, endpoint = text.partition(":")
    if name != BATSIM_ENGINE or (colon and not endpoint.startswith(("tcp://", "ipc://"))):
        remedy = f"{BATSIM_ENGINE}, or {BATSIM_ENGINE}:tcp://127.0.0.1:28000"
        raise InputError(source, at="engine", problem=f"{text!r} is not possible", remedy=remedy)
    if scheduler.startswith(BATSIM_PREFIX):
        problem = "a scheduler of Batsim's protocol needs nobody between it and Batsim"
        raise InputError(source, at="engine", problem=problem, remedy="start Batsim with it, without Batkube")
    if time.mode is not TimeMode.EXACT:
        raise InputError(source, at="engine", problem=f"Batsim does not follow {time.mode} time", remedy="exact time")
    if values.get("energy"):
        problem = "what machines draw is for Batsim to count"
        raise InputError(source, at="energy", problem=problem, remedy="start Batsim with -E, and leave it out here")
    return text


def _boolean(values: Mapping[str, object], key: str, source: str | Path) -> bool | None:
    value = values.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(source, at=key, problem=f"{value!r} is neither true nor false")
    return value


def _submission_form(values: Mapping[str, object], scheduler: str, source: str | Path) -> SubmissionForm | None:
    """Return what jobs are submitted as, if the scenario says so; a policy knows jobs as they are."""
    if values.get("submit-as") is None:
        return None
    form = _choice(SubmissionForm, values, "submit-as", source)
    if form is not SubmissionForm.PODS and scheduler.startswith(IN_PROCESS_PREFIXES):
        problem = f"{scheduler} does not support jobs as {form.value!r}"
        raise InputError(source, at="submit-as", problem=problem, remedy="leave it out, or use a real scheduler")
    return form


def _controllers(values: Mapping[str, object], scheduler: str, source: str | Path) -> str | None:
    """Return who looks after objects; a program can, where time is shared with one anyway."""
    choice = values.get("controllers")
    if choice is None or choice in (OUR_CONTROLLERS, NO_CONTROLLERS):
        return None if choice is None else str(choice)
    if not is_controller_manager(str(choice)):
        problem = f"{choice!r} is not possible"
        raise InputError(source, at="controllers", problem=problem, remedy=CONTROLLERS_REMEDY)
    if scheduler.startswith(IN_PROCESS_PREFIXES):
        raise _not_attachable_error(source, "controllers", scheduler)
    return str(choice)


def is_controller_manager(text: str) -> bool:
    """Return whether a command line is that of a kube-controller-manager, by its name or path."""
    program = text.partition(" ")[0]
    return program.rpartition("/")[2].partition("@")[0] == CONTROLLER_MANAGER


def _attached_programs(values: Mapping[str, object], scheduler: str, source: str | Path) -> tuple[str, ...]:
    """Return the programs to attach, which is possible only where time is shared with a program anyway."""
    programs = tuple(str(one) for one in as_list(values.get("attach") or []))
    if programs and scheduler.startswith(IN_PROCESS_PREFIXES):
        raise _not_attachable_error(source, "attach", scheduler)
    return programs


def _not_attachable_error(source: str | Path, key: str, scheduler: str) -> InputError:
    problem = f"{scheduler} decides within the simulation, where nothing can be attached"
    return InputError(source, at=key, problem=problem, remedy="use a real scheduler, such as kube-scheduler")


def _time(values: Mapping[str, object], scheduler: str, source: str | Path) -> TimeRules:
    """Return how time moves; what follows the real time can neither be repeated nor be any use to a policy."""
    try:
        rules = parse_time(values.get("time") or TimeMode.EXACT)
    except InvalidTimeRules as error:
        raise InputError(source, at="time", problem=str(error), remedy=error.remedy) from error
    if rules.mode is TimeMode.EXACT:
        return rules
    follows = f"{rules.mode} time follows the real one"
    if scheduler.startswith(IN_PROCESS_PREFIXES):
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
    schedulers = [str(one) for one in as_list(values.get("scheduler") or "policy:fcfs")]
    policies = [one for one in schedulers if split_scheduler(one)[1].startswith(IN_PROCESS_PREFIXES)]
    if policies and (len(schedulers) > 1 or split_scheduler(policies[0])[0]):
        raise InputError(
            source,
            at="scheduler",
            problem="a policy schedules every job of a run, whatever scheduler a job names",
            remedy=f"write --scheduler {split_scheduler(policies[0])[1]} alone",
        )
    names = [split_scheduler(scheduler)[0] for scheduler in schedulers[1:]]
    if "" in names or len(set(names)) < len(names):
        raise InputError(
            source,
            at="scheduler",
            problem="several schedulers need a name each, from the second on",
            remedy="write NAME=SCHEDULER, and in the workload give jobs that scheduler's NAME",
        )
    return schedulers


def _shares(shares: object, names: Sequence[str], source: str | Path) -> dict[str, float]:
    """Return which share of the jobs each further scheduler gets: a mapping, or `NAME=30%,…` as on the command line."""
    remedy = "give shares such as 0.3 or 30% by the NAMEs of further schedulers, NAME=SCHEDULER, together at most 1"
    if isinstance(shares, str):
        shares = {name: text for name, _, text in (part.partition("=") for part in shares.split(","))}
    if not isinstance(shares, Mapping | None):
        raise InputError(source, at="shares", problem=f"{shares!r} is not a mapping of names to shares", remedy=remedy)
    known: dict[str, float] = {}
    for name, text in (shares or {}).items():
        share = _parse_share(str(text))
        if name not in names:
            problem = f"there is no further scheduler {name!r}"
            raise InputError(source, at="shares", problem=problem, remedy=remedy)
        if share is None:
            raise InputError(source, at=f"shares.{name}", problem=f"{text!r} is not a share", remedy=remedy)
        known[str(name)] = share
    if sum(known.values()) > 1:
        raise InputError(source, at="shares", problem=f"come to {sum(known.values()):g}", remedy=remedy)
    return known


def _parse_share(text: str) -> float | None:
    """Return a share from 0 to 1, which may be written as a percentage; None for anything else."""
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
        raise InputError(source, at=key, problem=f"{text} is not a length of time")
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


def _choice(kind: type[_Choice], values: Mapping[str, object], key: str, source: str | Path) -> _Choice:
    members = list(kind)
    value = str(values.get(key) or members[0].value)
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(member.value for member in members)
        raise InputError(source, at=key, problem=f"{value!r} is not possible", remedy=f"one of {choices}") from None
