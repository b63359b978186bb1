"""The environment of an outside program: variables, files and mounts by which clients of Kubernetes find the API.

They look in several places: a kubeconfig that KUBECONFIG names; in a pod, the variables KUBERNETES_SERVICE_* and the
files of the service account; beside `kubectl proxy`, a port on the loopback that asks for no credentials. A program
finds all of them, and each leads to the run's API.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from batkube.programs.program import ExternalProgram
from batkube.programs.startup.command_lines import CERTIFICATES, ProgramFolder, served_scheduler_names
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.installed import cache_folder, module_path, search_path
from batkube.schedulers.named_programs import fill_placeholders
from batkube.schedulers.preload_library import clock_library
from batkube.timing.processes.mounts import bind_mounts

#: Where `kubectl proxy` listens unless told otherwise.
PROXY_PORT = 8001
_HOST = "127.0.0.1"


class ProgramEnvironment(NamedTuple):
    """What a program is started with, besides its command line."""

    variables: dict[str, str]
    #: What the server is to show to clients that speak TLS.
    tls: ssl.SSLContext | None = None
    #: What has to be called in the new process before it becomes the program.
    prepare: Callable[[], None] | None = None


def uses_proxy(scheduler: ExternalProgram) -> bool:
    """Return whether a program is asked for no credentials, as by `kubectl proxy`."""
    return scheduler.start.clock is not ClockKind.GO or scheduler.start.proxy_port > 0


def environment_of(
    scheduler: ExternalProgram, own: ProgramFolder, temporary: str, port: int, seed: int, token: str
) -> ProgramEnvironment:
    """Return the environment of a program whose API is at `port`; its `own` files have a kubeconfig among them.

    `temporary` is the folder for files that nobody needs later; `token` shows the server of the API that
    it may do everything.
    """
    kind, folder = scheduler.start.clock, own.path
    # Without TZ, programs would log in the machine's own time zone. Without TMPDIR, runs at the same time would meet in
    # one folder: their randomness has the same seed, so they would even choose the same names there.
    variables = {"TZ": "UTC", "TMPDIR": temporary}
    variables |= fill_placeholders(
        dict(scheduler.start.environment), {"folder": own.program_path, "temporary": temporary}
    )
    if kind is not ClockKind.GO:
        variables |= _variables(scheduler, own, port, seed)
    tls, mounts = None, {Path(place): Path(to) for place, to in _mounts(scheduler, folder).items()}
    if kind is ClockKind.PRELOAD or scheduler.start.in_cluster:
        from batkube.programs.startup.service_account import MOUNT_PATH, write_service_account

        account = folder / "pod" / "serviceaccount"
        tls = write_service_account(account, token, _HOST)
        variables |= {"KUBERNETES_SERVICE_HOST": _HOST, "KUBERNETES_SERVICE_PORT": str(port)}
        if kind is ClockKind.PRELOAD:
            variables |= {
                "LD_PRELOAD": str(clock_library(cache_folder())),
                "BATKUBE_SERVICE_ACCOUNT": own.to_program_path(account),
            }
        else:
            mounts[MOUNT_PATH] = account
    return ProgramEnvironment(variables, tls, bind_mounts(mounts, folder / "mounts") if mounts else None)


def _mounts(scheduler: ExternalProgram, folder: Path) -> dict[str, str]:
    """Return the folders that a program looks for at places of the file system, by these."""
    places = {"folder": str(folder), "certificates": str(folder / CERTIFICATES)}
    filled: dict[str, str] = fill_placeholders(dict(scheduler.start.mounts), places)
    return filled


def _variables(scheduler: ExternalProgram, own: ProgramFolder, port: int, seed: int) -> dict[str, str]:
    """Return the variables of a program that may be anything: a user's usual ones, and where the API is."""
    return module_path() | {
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "HOME": own.program_path,
        "KUBECONFIG": own.to_program_path(own.path / "kubeconfig"),
        "BATKUBE_PROXY": f"http://{_HOST}:{port}",
        "BATKUBE_SCHEDULER_NAME": "".join(served_scheduler_names(scheduler)[:1]),
        "BATKUBE_SEED": str(seed),
        # Sets of texts have another order in every process otherwise.
        "PYTHONHASHSEED": str(seed % 2**32),
        "PYTHONUNBUFFERED": "1",
    }
