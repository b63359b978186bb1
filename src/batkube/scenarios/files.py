"""Read scenario files. Paths in a scenario file are relative to the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from batkube.files.yaml_reader import read_yaml
from batkube.kernel.errors import InputError
from batkube.platforms.reader import is_file_spec
from batkube.scenarios.keys import KEYS, as_list, split_scheduler
from batkube.scenarios.relocation import is_file
from batkube.scenarios.scenario import POLICY_PREFIX, policy_file
from batkube.text.suggestions import suggestion
from batkube.workloads.synthetic.recipes import RESAMPLE

#: A clock (`python:./mine.py`) or a protocol (`batsim:./mine --verbose`) before a command line.
_PREFIXED = re.compile(r"([a-z]+:)(.*)", re.DOTALL)
#: An endpoint: `batsim:tcp://127.0.0.1:28000`.
_ENDPOINT = re.compile(r"([a-z]+:)?[a-z]+://")


def read_scenario_file(path: Path) -> dict[str, object]:
    """Return the values of a scenario file by key. Its paths are resolved against its folder."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise InputError(path, problem="is not a scenario: a mapping is expected", remedy=f"keys: {', '.join(KEYS)}")
    if "jobs" in content:
        raise InputError(path, problem="is a workload, not a scenario", remedy=f"--workload {path}")
    return scenario_values(content, path)


def scenario_values(content: dict[str, object], path: Path) -> dict[str, object]:
    """Check the keys of a scenario, and resolve its paths against the folder of the file `path`."""
    for key in content:
        if key not in KEYS:
            raise InputError(path, at=str(key), problem="is not a key of a scenario", remedy=suggestion(key, KEYS))
    _check_strings(content, path)
    return _resolve_paths(content, path.parent)


def _check_strings(content: Mapping[str, object], path: Path) -> None:
    """Reject values that are not strings: YAML reads `platform: 16` as a number and `[16x1]` as a list."""
    for key in ("platform", "latencies", "rules", "scheduler-config", "decision-cost", "catalogue"):
        value = content.get(key)
        if value is not None and not isinstance(value, str):
            raise InputError(path, at=key, problem=f"{value!r} is not a string", remedy=f'write {key}: "…"')
    for key, kind in (("workload", "path"), ("scheduler", "scheduler"), ("attach", "command line")):
        value = content.get(key) or ""
        types = (str, Mapping) if key == "workload" else (str,)
        if not all(isinstance(item, types) for item in as_list(value)):
            raise InputError(path, at=key, problem=f"{value!r} is not a {kind} or a list of {kind}s")


def _resolve_paths(content: dict[str, object], folder: Path) -> dict[str, object]:
    resolved = dict(content)
    workload = content.get("workload")
    if workload is not None:
        resolved["workload"] = [_resolve_workload(source, folder) for source in as_list(workload)]
    platform = content.get("platform")
    if isinstance(platform, str) and is_file_spec(platform):
        resolved["platform"] = str(folder / platform)
    for key in ("latencies", "rules", "scheduler-config", "catalogue"):
        if content.get(key) is not None:
            resolved[key] = str(folder / str(content[key]))
    if content.get("events"):
        from batkube.workloads.timeline.reader import resolve_files

        resolved["events"] = resolve_files(content["events"], folder)
    scheduler = content.get("scheduler")
    if isinstance(scheduler, str) and policy_file(scheduler) is not None:
        resolved["scheduler"] = f"{POLICY_PREFIX}{folder / scheduler.removeprefix(POLICY_PREFIX)}"
    elif isinstance(scheduler, str | list):
        resolved["scheduler"] = [_resolve_scheduler(str(text), folder) for text in as_list(scheduler)]
    if isinstance(content.get("controllers"), str):
        resolved["controllers"] = _resolve_command(str(content["controllers"]), folder)
    if content.get("attach"):
        resolved["attach"] = [_resolve_command(str(command), folder) for command in as_list(content["attach"])]
    return resolved


def _resolve_workload(workload: object, folder: Path) -> object:
    """Resolve the path of a workload, or the path of the trace in a recipe."""
    if not isinstance(workload, Mapping):
        return str(folder / str(workload))
    trace = workload.get(RESAMPLE)
    return {**workload, RESAMPLE: str(folder / trace)} if isinstance(trace, str) else dict(workload)


def _resolve_command(text: str, folder: Path) -> str:
    """Resolve the program of a command line if it is a path. Its arguments stay unchanged."""
    if _ENDPOINT.match(text):
        return text
    if match := _PREFIXED.fullmatch(text):
        return f"{match[1]}{_resolve_command(match[2], folder)}"
    if is_file(folder / text):
        return str(folder / text)
    program, space, arguments = text.partition(" ")
    return f"{folder / program}{space}{arguments}" if "/" in program else text


def _resolve_scheduler(scheduler: str, folder: Path) -> str:
    """Resolve the program of a scheduler, which may have the form `NAME=SCHEDULER`."""
    name, program = split_scheduler(scheduler)
    resolved = _resolve_command(program, folder) if policy_file(program) is None else program
    return f"{name}={resolved}" if name else resolved
