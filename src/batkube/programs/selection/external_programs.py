"""Select a scenario's external programs, by name or path, with their arguments and configuration.

A program of the catalogue is started by its entry, with the user's options on top. A program given by its path is
started like kube-scheduler. Programs that cannot be started are rejected before any is started.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from batkube.files.yaml_reader import read_yaml
from batkube.kernel.errors import InputError
from batkube.policies.registry.catalogue import policy_names
from batkube.programs.observation.decision_log import VERBOSITY, VERBOSITY_FLAGS
from batkube.programs.program import Builder, ExternalProgram
from batkube.programs.selection.clock_commands import program_of_command, start_with_clock
from batkube.programs.startup.command_lines import served_scheduler_names
from batkube.programs.startup.extenders import reject_binding_extenders
from batkube.scenarios.keys import split_scheduler
from batkube.scenarios.scenario import CONTROLLER_MANAGER, Scenario
from batkube.schedulers.catalogue import Catalogue
from batkube.schedulers.clocks import split_clock
from batkube.schedulers.installed import installed_program, is_built_in, user_catalogue
from batkube.schedulers.named_programs import ProgramStart, fill_placeholders, program_start
from batkube.timing.time_rules import TimeMode

#: Batkube's own scheduler, which can write the errors of its cache to a file (--audit).
KUBEFLUX = "kubeflux"


class ProgramSource(NamedTuple):
    """Where programs come from: a catalogue, and the builder of its programs."""

    catalogue: Catalogue
    #: None to build programs without progress messages.
    builder: Builder | None = None
    #: The time mode of the run.
    time: TimeMode = TimeMode.EXACT

    def start(self, name: str) -> ProgramStart:
        """Return how a program of the catalogue is started; reject one that does not support virtual time."""
        start = program_start(name, self.catalogue)
        if not start.virtual:
            remedy = "choose one of `batkube schedulers list`"
            raise InputError(f"program {name!r}", problem="does not support virtual time", remedy=remedy)
        return start

    def program(
        self, name: str, start: ProgramStart, arguments: Sequence[str], content: Mapping[str, Any]
    ) -> ExternalProgram:
        """Return the program of a name with this start: a built binary, or a command."""
        if start.command:
            return program_of_command(start, name, [*start.command, *arguments], self.time)
        binary = self._binary(name)
        if "/" in name:
            start = replace(start, is_built_in=is_built_in(binary))
        return ExternalProgram(name, binary, start, tuple(arguments), content)

    def _binary(self, name: str) -> Path:
        """Return the binary of a path, or of a name in the catalogue."""
        if "/" not in name:
            return (self.builder or installed_program)(name, self.catalogue)
        path = Path(name)
        if not path.is_file():
            raise InputError(f"program {name!r}", problem="there is no such program", remedy="check the path")
        return path.resolve()


def external_programs(scenario: Scenario, builder: Builder | None) -> tuple[ExternalProgram, ...]:
    """Return the programs of a scenario: schedulers, the main one first, then their companions, controllers and others.

    Raises InputError for a program that cannot be started. `builder` returns the binary of a name; without it, programs
    are built silently.
    """
    catalogue = user_catalogue([] if scenario.catalogue is None else [scenario.catalogue])
    source = ProgramSource(catalogue, builder, scenario.time.mode)
    texts = (scenario.scheduler, *scenario.more_schedulers)
    schedulers = [_scheduler(text, number, scenario, source) for number, text in enumerate(texts)]
    companions = [companion for scheduler in schedulers for companion in _companions(scheduler, source)]
    text = scenario.controller_manager
    managers = [] if text is None else [_controller_manager(text, source)]
    others = [_attached_program(text, number, source) for number, text in enumerate(scenario.attach, start=1)]
    return (*schedulers, *companions, *managers, *others)


def _scheduler(text: str, number: int, scenario: Scenario, source: ProgramSource) -> ExternalProgram:
    """Return a scheduler from its text in the scenario, `[NAME=]PROGRAM [ARGUMENT…]`; number 0 is the main one."""
    serves, command = split_scheduler(text)
    kind, rest = split_clock(command)
    more = [f"--{key}={value}" for key, value in scenario.scheduler_args.items()] if number == 0 else []
    if kind is not None:
        program = program_of_command(start_with_clock(kind), command, [*_split_command(rest), *more], source.time)
        return dataclasses.replace(program, serves=serves, folder=serves if number else "")
    name, *arguments = _split_command(command)
    policies = [policy for policy, _ in policy_names()]
    if name in policies or name.endswith(".py") or ".py:" in name:
        raise InputError(f"scheduler {name!r}", problem="is a policy, not a program", remedy=f"write policy:{name}")
    start = source.start("kube-scheduler" if "/" in name else name)
    if not start.scheduler_name:
        raise InputError(
            f"scheduler {name!r}", problem="is not a scheduler", remedy=f"use --attach {name}, and a scheduler"
        )
    arguments += more
    if name == KUBEFLUX and scenario.audit is not None and not any(flag.startswith("--audit") for flag in arguments):
        arguments.append("--audit={folder}/audit.jsonl")
    names = {text.partition("=")[0] for text in arguments}
    if scenario.explain and source.time is TimeMode.EXACT and start.has_profiles and names.isdisjoint(VERBOSITY_FLAGS):
        arguments.append(VERBOSITY)
    arguments, file = _split_off_configuration(arguments, start)
    if number == 0 and scenario.scheduler_config is not None:
        file = scenario.scheduler_config
    content = program_configuration(name, start, file, serves)
    if file is not None and scenario.time.mode is TimeMode.EXACT:
        reject_binding_extenders(content, file)
    program = source.program(name, start, arguments, content)
    return dataclasses.replace(program, serves=serves, folder=serves if number else "")


def _companions(scheduler: ExternalProgram, source: ProgramSource) -> list[ExternalProgram]:
    """Return the companion programs of a scheduler; a companion that is a scheduler itself serves the same pods."""
    scheduler_name = served_scheduler_names(scheduler)[0]
    programs = []
    for text in scheduler.start.companions:
        name, *arguments = _split_command(fill_placeholders(text, {"scheduler-name": scheduler_name}))
        start = source.start(name)
        serves = scheduler.serves if start.scheduler_name else ""
        program = source.program(name, start, arguments, program_configuration(name, start, serves=serves))
        folder = str(Path(scheduler.folder, name.partition("@")[0]))
        programs.append(dataclasses.replace(program, serves=serves, folder=folder))
    return programs


def controller_manager(text: str, builder: Builder | None) -> ExternalProgram:
    """Return the controller manager with this command line."""
    return _controller_manager(text, ProgramSource(user_catalogue(), builder))


def _controller_manager(text: str, source: ProgramSource) -> ExternalProgram:
    return _program_of_command_line(text, CONTROLLER_MANAGER, source, like=CONTROLLER_MANAGER)


def _attached_program(text: str, number: int, source: ProgramSource) -> ExternalProgram:
    """Return a program attached beside the schedulers; number 1 is the first one."""
    kind, command = split_clock(text)
    words = _split_command(command)
    folder = f"attached-{number}-{words[0].rpartition('/')[2].partition('@')[0]}"
    if kind is None:
        return _program_of_command_line(text, folder, source)
    program = program_of_command(replace(start_with_clock(kind), scheduler_name=""), text, words, source.time)
    return dataclasses.replace(program, folder=folder)


def _program_of_command_line(text: str, folder: str, source: ProgramSource, like: str = "") -> ExternalProgram:
    """Return a program that is not a scheduler of the run, from its command line; its files go into `folder`.

    A program given by its path is started as the program `like` of the catalogue, if set.
    """
    name, *arguments = _split_command(text)
    has_kubeconfig = any("{kubeconfig}" in argument for argument in arguments)
    start = ProgramStart(() if has_kubeconfig else ("--kubeconfig={kubeconfig}",), {}, "")
    if "/" not in name or like:
        start = replace(source.start(like if "/" in name else name), scheduler_name="")
    arguments, file = _split_off_configuration(arguments, start)
    content = program_configuration(name, start, file)
    return dataclasses.replace(source.program(name, start, arguments, content), folder=folder)


def _split_command(command: str) -> list[str]:
    """Split a command line into words; an existing path without arguments may contain spaces."""
    if "/" in command and Path(command).is_file():
        return [command]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"program {command!r}", problem=f"is not a valid command line: {error}") from error
    if not words:
        raise InputError("a program", problem="has no name", remedy="write a name or a path")
    return words


def _split_off_configuration(arguments: Sequence[str], start: ProgramStart) -> tuple[list[str], Path | None]:
    """Separate the user's configuration file from the other arguments.

    The file is not passed on unchanged, because the run's kubeconfig must be merged into it.
    """
    flags = start.configuration_flags
    files = [Path(text.partition("=")[2]) for text in arguments if text.partition("=")[0] in flags]
    return [text for text in arguments if text.partition("=")[0] not in flags], files[-1] if files else None


def program_configuration(name: str, start: ProgramStart, file: Path | None = None, serves: str = "") -> dict[str, Any]:
    """Return the content of a program's configuration file: the default, with the user's `file` on top.

    If the program has profiles and serves a scheduler name of its own, the first profile gets that name.
    """
    if file is not None:
        if not start.configuration_flags:
            raise InputError(file, problem=f"{name} takes no configuration file", remedy="omit it")
        merged: dict[str, Any] = _merge(start.configuration, _read_configuration(start.configuration, file))
        return merged
    if serves and start.has_profiles:
        first, *others = start.configuration.get("profiles") or [{}]
        return {**start.configuration, "profiles": [{**first, "schedulerName": serves}, *others]}
    return start.configuration


def _read_configuration(default: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the content of the user's file, which must have the kind of the default one."""
    content, kind = read_yaml(path), default.get("kind")
    if not isinstance(content, dict):
        raise InputError(path, problem=f"is not a {kind or 'mapping'}", remedy="see docs/reference/schedulers.md")
    if kind is not None and content.get("kind") != kind:
        group = str(default.get("apiVersion")).partition("/")[0]
        raise InputError(path, problem=f"is not a {kind}", remedy=f"use a file of kind {kind} ({group})")
    try:
        json_content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(content))
    except (TypeError, msgspec.EncodeError) as problem:
        raise InputError(path, problem=str(problem)) from problem
    return json_content


def _merge(default: Any, user: Any) -> Any:  # noqa: ANN401 - any YAML
    """Merge the user's content over the default; the placeholder of the run's kubeconfig always stays."""
    if isinstance(default, dict) and (isinstance(user, dict) or user is None):
        user_fields = user or {}
        merged = {key: _merge(default[key], value) if key in default else value for key, value in user_fields.items()}
        return {**merged, **{key: value for key, value in default.items() if key not in user_fields}}
    return default if default == "{kubeconfig}" else user
