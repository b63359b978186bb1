"""Environment of external programs: the variables, files and mounts through which Kubernetes clients find the API.

Clients use several sources: the kubeconfig in KUBECONFIG; in a pod, the variables KUBERNETES_SERVICE_* and the files
of the service account; with `kubectl proxy`, a local port without authentication. All of them lead to the run's API.
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

#: Default port of `kubectl proxy`.
PROXY_PORT = 8001
_HOST = "127.0.0.1"


class ProgramEnvironment(NamedTuple):
    """Everything that a program is started with, besides its command line."""

    variables: dict[str, str]
    #: TLS settings of the run's API server.
    tls: ssl.SSLContext | None = None
    #: Called in the new process before it executes the program.
    prepare: Callable[[], None] | None = None


def uses_proxy(scheduler: ExternalProgram) -> bool:
    """Return whether a program accesses the API without credentials, as through `kubectl proxy`."""
    return scheduler.start.clock is not ClockKind.GO or scheduler.start.proxy_port > 0


def environment_of(
    scheduler: ExternalProgram, files: ProgramFolder, temporary: str, port: int, seed: int, token: str
) -> ProgramEnvironment:
    """Return the environment of a program whose API is at `port`; its `own` folder contains a kubeconfig.

    `temporary` is its folder for temporary files. `token` authenticates the program as an administrator.
    """
    kind, folder = scheduler.start.clock, files.path
    # Without TZ, programs would log in the machine's time zone. Without TMPDIR, concurrent runs would share a folder,
    # and even choose the same names in it, because their random numbers have the same seed.
    variables = {"TZ": "UTC", "TMPDIR": temporary}
    variables |= fill_placeholders(
        dict(scheduler.start.environment), {"folder": files.program_path, "temporary": temporary}
    )
    if kind is not ClockKind.GO:
        variables |= _variables(scheduler, files, port, seed)
    tls, mounts = None, {Path(target): Path(source) for target, source in _mounts(scheduler, folder).items()}
    if kind is ClockKind.PRELOAD or scheduler.start.in_cluster:
        from batkube.programs.startup.service_account import MOUNT_PATH, write_service_account

        account = folder / "pod" / "serviceaccount"
        tls = write_service_account(account, token, _HOST)
        variables |= {"KUBERNETES_SERVICE_HOST": _HOST, "KUBERNETES_SERVICE_PORT": str(port)}
        if kind is ClockKind.PRELOAD:
            variables |= {
                "LD_PRELOAD": str(clock_library(cache_folder())),
                "BATKUBE_SERVICE_ACCOUNT": files.to_program_path(account),
            }
        else:
            mounts[MOUNT_PATH] = account
    return ProgramEnvironment(variables, tls, bind_mounts(mounts, folder / "mounts") if mounts else None)


def _mounts(scheduler: ExternalProgram, folder: Path) -> dict[str, str]:
    """Return a program's bind mounts: target path to source folder."""
    values = {"folder": str(folder), "certificates": str(folder / CERTIFICATES)}
    mounts: dict[str, str] = fill_placeholders(dict(scheduler.start.mounts), values)
    return mounts


def _variables(scheduler: ExternalProgram, files: ProgramFolder, port: int, seed: int) -> dict[str, str]:
    """Return the variables of a program not written in Go: a minimal environment, and the address of the API."""
    return module_path() | {
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "HOME": files.program_path,
        "KUBECONFIG": files.to_program_path(files.path / "kubeconfig"),
        "BATKUBE_PROXY": f"http://{_HOST}:{port}",
        "BATKUBE_SCHEDULER_NAME": "".join(served_scheduler_names(scheduler)[:1]),
        "BATKUBE_SEED": str(seed),
        # Otherwise the order of sets of strings differs in each process.
        "PYTHONHASHSEED": str(seed % 2**32),
        "PYTHONUNBUFFERED": "1",
    }
