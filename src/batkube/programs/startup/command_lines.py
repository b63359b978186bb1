"""How an outside program is started: its command line, and the files that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from batkube.cluster.kubeconfigs import kubeconfig
from batkube.cluster.mapping import DEFAULT_SCHEDULER
from batkube.kernel.files.private import write_private
from batkube.programs.program import ExternalProgram
from batkube.schedulers.named_programs import fill_placeholders

if TYPE_CHECKING:
    # With it come http.client and TLS, several megabytes that a run of policies has no use for.
    from batkube.programs.startup.extenders import ExtenderProxy

_SECOND_LOOPBACK = "127.0.0.2"
#: The folder of a program's certificates, within that of its files.
CERTIFICATES = "certificates"


class ProgramFolder(NamedTuple):
    """The folder of a program's files, and the path under which the program knows it."""

    path: Path
    program_path: str

    def to_program_path(self, path: Path) -> str:
        """Return the path under which the program knows a file of its folder."""
        return str(Path(self.program_path, path.relative_to(self.path)))


def command_line(
    scheduler: ExternalProgram, folder: ProgramFolder, port: int, secret: str, extenders: ExtenderProxy
) -> list[str]:
    """Write the files that a program reads into `folder`, and return the command that starts it.

    The API for it is on `port`, below the path `secret`.
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
    """Write the files that a program reads into `folder`, and return the command that starts it with a kubeconfig.

    `configuration` is the content of its configuration file; `port` is one that nobody else on the loopback has.
    """
    places: dict[str, str | int] = {
        "kubeconfig": folder.to_program_path(path) if path.is_relative_to(folder.path) else str(path),
        "folder": folder.program_path,
        "scheduler-name": "".join(served_scheduler_names(scheduler)[:1]),
        # As long as we hold the port, no other run takes it on the loopback's second address.
        "address": f"{_SECOND_LOOPBACK}:{port}",
        "host": _SECOND_LOOPBACK,
        "port": port,
        "proxy": f"http://127.0.0.1:{port}",
    }
    if "{certificates}" in str(scheduler):
        from batkube.programs.startup.certificates import write_certificates

        write_certificates(folder.path / CERTIFICATES, scheduler.name)
        places["certificates"] = folder.to_program_path(folder.path / CERTIFICATES)
    for name, content in scheduler.start.files.items():
        places[f"file:{name}"] = folder.to_program_path(
            _write_file(folder.path / "files" / name, fill_placeholders(content, places))
        )
    content = fill_placeholders(configuration, places)
    if content:
        # It has the secret as well, where extenders are asked through the server.
        own = folder.path / "configuration" if scheduler.start.watches_configuration else folder.path
        places["configuration"] = folder.to_program_path(_write_file(own / "configuration.yaml", content))
    return [*(scheduler.command or [str(scheduler.binary)]), *arguments_of(scheduler, places)]


def _write_file(path: Path, content: str | dict[str, Any]) -> Path:
    """Write a text, or what YAML is made of, to a file that only its owner may read; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return path


def arguments_of(scheduler: ExternalProgram, places: Mapping[str, str | int]) -> list[str]:
    """Return the arguments of a program: its own, but for those that the user's replace, and the user's."""
    replaced = [text.partition("=")[0] for text in scheduler.arguments]
    if "configuration" not in places:
        replaced += scheduler.start.configuration_flags
    own = [text for text in scheduler.start.arguments if text.partition("=")[0] not in replaced]
    filled: list[str] = fill_placeholders([*own, *scheduler.arguments], places)
    return filled


def served_scheduler_names(scheduler: ExternalProgram) -> list[str]:
    """Return the `schedulerName`s that a scheduler serves: one per profile of its configuration. Others serve none."""
    if not scheduler.start.scheduler_name:
        return []
    profiles = scheduler.configuration.get("profiles")
    if profiles and scheduler.start.has_profiles:
        return [profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles]
    return [scheduler.serves or scheduler.start.scheduler_name]


def required_api_versions(schedulers: Sequence[ExternalProgram]) -> list[str]:
    """Return the versions of the API that programs of the past need beside today's."""
    return list(dict.fromkeys(version for scheduler in schedulers for version in scheduler.start.needs))
