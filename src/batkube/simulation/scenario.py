"""A scenario: the full description of one run.

It comes from the command line, from keyword arguments, or from a YAML file whose keys are the fields below with dashes;
paths in a file are relative to that file. What is given twice is taken from the more specific place: option over file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from batkube.kernel.documents import read_yaml
from batkube.kernel.errors import InputError
from batkube.platforms.reading import names_file


class Resources(enum.StrEnum):
    """Which resource model a run uses."""

    AUTO = "auto"  # requests when any job states cpu, memory or other requests, machines otherwise
    MACHINES = "machines"
    REQUESTS = "requests"


class OnEviction(enum.StrEnum):
    """What becomes of a job that is stopped to make room."""

    RESUBMIT = "resubmit"  # it is queued again and starts over
    FAIL = "fail"  # it ends as COMPLETED_KILLED


class TimeMode(enum.StrEnum):
    """How virtual time moves."""

    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Scenario:
    """The full description of one run."""

    workloads: tuple[Path, ...]
    platform: str
    scheduler: str = "policy:fcfs"
    scheduler_args: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    time: TimeMode = TimeMode.EXACT
    resources: Resources = Resources.AUTO
    latencies: Path | None = None
    on_eviction: OnEviction = OnEviction.RESUBMIT
    #: The configuration file of an outside scheduler, handed to it untouched.
    scheduler_config: Path | None = None
    #: Whether an outside scheduler runs such that the same scenario gives the same bytes.
    deterministic: bool = True

    @property
    def is_outside(self) -> bool:
        """Whether the scheduler is a program of its own rather than a policy of ours."""
        return not self.scheduler.startswith(POLICY_PREFIX)

    def describe(self) -> dict[str, object]:
        """Return the scenario as the keys of a scenario file, as the manifest holds it."""
        return {
            "workload": [str(path) for path in self.workloads],
            "platform": self.platform,
            "scheduler": self.scheduler,
            "scheduler-args": dict(self.scheduler_args),
            "seed": self.seed,
            "time": self.time.value,
            "resources": self.resources.value,
            "latencies": None if self.latencies is None else str(self.latencies),
            "on-eviction": self.on_eviction.value,
            "scheduler-config": None if self.scheduler_config is None else str(self.scheduler_config),
            "deterministic": self.deterministic,
        }


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

KEYS = ("workload", *(entry.name.replace("_", "-") for entry in fields(Scenario) if entry.name != "workloads"))


def read_scenario_file(path: Path) -> dict[str, object]:
    """Return the keys of a scenario file, its paths resolved against the file's folder."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise InputError(path, problem="is not a scenario: a mapping is expected", remedy=f"keys: {', '.join(KEYS)}")
    if "jobs" in content:
        raise InputError(path, problem="is a workload, not a scenario", remedy=f"--workload {path}")
    for key in content:
        if key not in KEYS:
            raise InputError(path, at=str(key), problem="is not a key of a scenario", remedy=f"keys: {', '.join(KEYS)}")
    _check_texts(content, path)
    return _with_resolved_paths(content, path)


def _check_texts(content: Mapping[str, object], path: Path) -> None:
    """See that what must be text is text: YAML reads `platform: 16` as a number and `[16x1]` as a list."""
    for key in ("platform", "scheduler", "latencies", "scheduler-config"):
        value = content.get(key)
        if value is not None and not isinstance(value, str):
            raise InputError(path, at=key, problem=f"{value!r} is not text", remedy=f'write {key}: "…"')
    workloads = content.get("workload", "")
    if not all(isinstance(one, str) for one in (workloads if isinstance(workloads, list) else [workloads])):
        raise InputError(path, at="workload", problem=f"{workloads!r} is not a path or a list of paths")


def _with_resolved_paths(content: dict[str, object], path: Path) -> dict[str, object]:
    resolved = dict(content)
    folder = path.parent
    if "workload" in content:
        given = content["workload"]
        resolved["workload"] = [str(folder / str(one)) for one in (given if isinstance(given, list) else [given])]
    platform = content.get("platform")
    if isinstance(platform, str) and names_file(platform):
        resolved["platform"] = str(folder / platform)
    for key in ("latencies", "scheduler-config"):
        if content.get(key) is not None:
            resolved[key] = str(folder / str(content[key]))
    scheduler = content.get("scheduler")
    if isinstance(scheduler, str) and policy_file(scheduler) is not None:
        resolved["scheduler"] = f"{POLICY_PREFIX}{folder / scheduler.removeprefix(POLICY_PREFIX)}"
    return resolved


def make_scenario(values: Mapping[str, object], source: str | Path) -> Scenario:
    """Return the scenario of `values`, keyed as in a scenario file; `source` is named in error messages."""
    for required in ("workload", "platform"):
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
    return Scenario(
        workloads=tuple(Path(str(one)) for one in (given if isinstance(given, list | tuple) else [given])),
        platform=str(values["platform"]),
        scheduler=str(values.get("scheduler") or "policy:fcfs"),
        scheduler_args={str(name): str(value) for name, value in arguments.items()},
        seed=seed,
        time=_choice(TimeMode, values, "time", source),
        resources=_choice(Resources, values, "resources", source),
        latencies=_path(values, "latencies"),
        on_eviction=_choice(OnEviction, values, "on-eviction", source),
        scheduler_config=_path(values, "scheduler-config"),
        deterministic=deterministic is not False,
    )


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
