"""Scenario files: the keys of a scenario, written down; paths in it are relative to the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.files.yaml_reader import read_yaml
from batkube.kernel.text.suggestions import suggestion
from batkube.platforms.reader import is_file_spec
from batkube.scenarios.keys import KEYS, as_list, split_scheduler
from batkube.scenarios.scenario import POLICY_PREFIX, policy_file
from batkube.workloads.synthetic.recipes import RESAMPLE


def read_scenario_file(path: Path) -> dict[str, object]:
    """Return the keys of a scenario file, its paths resolved against the file's folder."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise InputError(path, problem="is not a scenario: a mapping is expected", remedy=f"keys: {', '.join(KEYS)}")
    if "jobs" in content:
        raise InputError(path, problem="is a workload, not a scenario", remedy=f"--workload {path}")
    return scenario_values(content, path)


def scenario_values(content: dict[str, object], path: Path) -> dict[str, object]:
    """Return the keys of a scenario written in the file `path`, checked, and with their paths seen from its folder."""
    for key in content:
        if key not in KEYS:
            raise InputError(path, at=str(key), problem="is not a key of a scenario", remedy=suggestion(key, KEYS))
    _check_strings(content, path)
    return _with_resolved_paths(content, path)


def _check_strings(content: Mapping[str, object], path: Path) -> None:
    """See that what must be text is text: YAML reads `platform: 16` as a number and `[16x1]` as a list."""
    for key in ("platform", "latencies", "rules", "scheduler-config", "decision-cost", "catalogue"):
        value = content.get(key)
        if value is not None and not isinstance(value, str):
            raise InputError(path, at=key, problem=f"{value!r} is not text", remedy=f'write {key}: "…"')
    for key, kind in (("workload", "path"), ("scheduler", "scheduler"), ("attach", "command line")):
        value = content.get(key) or ""
        kinds = (str, Mapping) if key == "workload" else (str,)
        if not all(isinstance(one, kinds) for one in as_list(value)):
            raise InputError(path, at=key, problem=f"{value!r} is not a {kind} or a list of {kind}s")


def _with_resolved_paths(content: dict[str, object], path: Path) -> dict[str, object]:
    resolved = dict(content)
    folder = path.parent
    workload = content.get("workload")
    if workload is not None:
        resolved["workload"] = [_resolved_workload(one, folder) for one in as_list(workload)]
    platform = content.get("platform")
    if isinstance(platform, str) and is_file_spec(platform):
        resolved["platform"] = str(folder / platform)
    for key in ("latencies", "rules", "scheduler-config", "catalogue"):
        if content.get(key) is not None:
            resolved[key] = str(folder / str(content[key]))
    if content.get("events"):
        from batkube.workloads.events.reader import resolve_files

        resolved["events"] = resolve_files(content["events"], folder)
    scheduler = content.get("scheduler")
    if isinstance(scheduler, str) and policy_file(scheduler) is not None:
        resolved["scheduler"] = f"{POLICY_PREFIX}{folder / scheduler.removeprefix(POLICY_PREFIX)}"
    elif isinstance(scheduler, str | list):
        resolved["scheduler"] = [_resolved_program(str(one), folder) for one in as_list(scheduler)]
    if isinstance(content.get("controllers"), str):
        resolved["controllers"] = _resolved_command(str(content["controllers"]), folder)
    if content.get("attach"):
        resolved["attach"] = [_resolved_command(str(one), folder) for one in as_list(content["attach"])]
    return resolved


def _resolved_workload(workload: object, folder: Path) -> object:
    """Return a workload's path seen from `folder`, or a recipe with that of its trace."""
    if not isinstance(workload, Mapping):
        return str(folder / str(workload))
    trace = workload.get(RESAMPLE)
    return {**workload, RESAMPLE: str(folder / trace)} if isinstance(trace, str) else dict(workload)


def _resolved_command(text: str, folder: Path) -> str:
    """Return a command line whose program, if it is a path, is relative to `folder`; its arguments are its own."""
    if (folder / text).is_file():
        return str(folder / text)
    program, space, arguments = text.partition(" ")
    return f"{folder / program}{space}{arguments}" if "/" in program else text


def _resolved_program(scheduler: str, folder: Path) -> str:
    """Return a scheduler of a scenario file, its path made relative to the file's folder if it is one."""
    serves, program = split_scheduler(scheduler)
    resolved = _resolved_command(program, folder) if policy_file(program) is None else program
    return f"{serves}={resolved}" if serves else resolved
