"""Command lines of external programs, and the files they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from batkube.cluster.kinds import DEFAULT_KUBERNETES
from batkube.cluster.kubeconfigs import kubeconfig
from batkube.cluster.mapping import DEFAULT_SCHEDULER
from batkube.files.private import write_private
from batkube.kernel.errors import InputError
from batkube.programs.program import ExternalProgram
from batkube.schedulers.named_programs import fill_placeholders

if TYPE_CHECKING:
    # This imports http.client and ssl: several megabytes that runs of policies do not need.
    from batkube.programs.startup.extenders import ExtenderProxy

_SECOND_LOOPBACK = "127.0.0.2"
#: Name of the folder with a program's certificates.
CERTIFICATES = "certificates"


class ProgramFolder(NamedTuple):
    """The folder of a program's files, and the path by which the program accesses it."""

    path: Path
    program_path: str

    def to_program_path(self, path: Path) -> str:
        """Return the path by which the program accesses a file in the folder."""
        return str(Path(self.program_path, path.relative_to(self.path)))


def command_line(
    scheduler: ExternalProgram, folder: ProgramFolder, port: int, secret: str, extenders: ExtenderProxy
) -> list[str]:
    """Write a program's files into `folder`, and return the command that starts it.

    Its API is at `port`, below the path `secret`.
    """
    path = folder.path / "kubeconfig"
    server = f"http://127.0.0.1:{port}/{secret}"
    write_private(path, kubeconfig({"server": server}, "batkube", {}))
    return command_line_with_kubeconfig(
        path, scheduler, folder, port, extenders.rewrite_configuration(scheduler.configuration, server)
    )


def command_line_with_kubeconfig(
    path: Path, scheduler: ExternalProgram, folder: ProgramFolder, port: int, configuration: Mapping[str, Any]
) -> list[str]:
    """Write a program's files into `folder`, and return the command that starts it with this kubeconfig.

    `configuration` is the content of its configuration file. `port` is reserved for this program on the loopback
    interface.
    """
    values: dict[str, str | int] = {
        "kubeconfig": folder.to_program_path(path) if path.is_relative_to(folder.path) else str(path),
        "folder": folder.program_path,
        "scheduler-name": "".join(served_scheduler_names(scheduler)[:1]),
        # The run's server has this port on the first loopback address, so no other run uses it on the second.
        "address": f"{_SECOND_LOOPBACK}:{port}",
        "host": _SECOND_LOOPBACK,
        "port": port,
        "proxy": f"http://127.0.0.1:{port}",
    }
    if "{certificates}" in str(scheduler):
        from batkube.programs.startup.certificates import write_certificates

        write_certificates(folder.path / CERTIFICATES, scheduler.name)
        values["certificates"] = folder.to_program_path(folder.path / CERTIFICATES)
    for name, content in scheduler.start.files.items():
        values[f"file:{name}"] = folder.to_program_path(
            _write_file(folder.path / "files" / name, fill_placeholders(content, values))
        )
    content = fill_placeholders(configuration, values)
    if content:
        # The file contains the secret too, if extenders are called through the server.
        folder_path = folder.path / "configuration" if scheduler.start.watches_configuration else folder.path
        values["configuration"] = folder.to_program_path(_write_file(folder_path / "configuration.yaml", content))
    return [*(scheduler.command or [str(scheduler.binary)]), *arguments_of(scheduler, values)]


def _write_file(path: Path, content: str | dict[str, Any]) -> Path:
    """Write a text, or an object as YAML, to a file that only its owner can read; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return path


def arguments_of(scheduler: ExternalProgram, values: Mapping[str, str | int]) -> list[str]:
    """Return a program's arguments: the defaults that the user does not override, then the user's."""
    overridden = [text.partition("=")[0] for text in scheduler.arguments]
    if "configuration" not in values:
        overridden += scheduler.start.configuration_flags
    defaults = [text for text in scheduler.start.arguments if text.partition("=")[0] not in overridden]
    arguments: list[str] = fill_placeholders([*defaults, *scheduler.arguments], values)
    return arguments


def served_scheduler_names(scheduler: ExternalProgram) -> list[str]:
    """Return the scheduler names that a program serves: one per profile of its configuration."""
    if not scheduler.start.scheduler_name:
        return []
    profiles = scheduler.configuration.get("profiles")
    if profiles and scheduler.start.has_profiles:
        return [profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles]
    return [scheduler.serves or scheduler.start.scheduler_name]


def required_kubernetes(programs: Sequence[ExternalProgram], requested: str | None) -> str:
    """Return the version of Kubernetes whose API to serve: the requested one, or else that which programs need."""
    needed = {program.start.kubernetes: program.name for program in programs if program.start.kubernetes}
    version = requested or next(iter(needed), DEFAULT_KUBERNETES)
    for other, name in needed.items():
        if other != version:
            problem = f"{name} needs the API of Kubernetes {other}, but that of {version} is served"
            raise InputError("kubernetes", problem=problem, remedy=f"write --kubernetes {other}, or omit it")
    return version


def required_api_versions(schedulers: Sequence[ExternalProgram]) -> list[str]:
    """Return the API versions that old programs need in addition to the current ones."""
    return list(dict.fromkeys(version for scheduler in schedulers for version in scheduler.start.needs))
