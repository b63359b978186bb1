"""What a program finds around it that is not started with a kubeconfig in its hand: an environment as in a pod.

Clients of Kubernetes look in several places. A kubeconfig is named by KUBECONFIG; in a pod there are the variables
KUBERNETES_SERVICE_* and the files of the service account; and beside `kubectl proxy` there is a port on the loopback
where nobody is asked who he is. All of them are there, and all lead to the run's API.
"""

from __future__ import annotations

from pathlib import Path

from batkube.programs.command_lines import names_served
from batkube.programs.program import OutsideScheduler
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.installed import cache_folder, search_path
from batkube.schedulers.preloaded import clock_library

#: Where `kubectl proxy` listens unless told otherwise.
PROXY_PORT = 8001
_HOST = "127.0.0.1"


def environment_of(scheduler: OutsideScheduler, folder: Path, port: int, seed: int) -> dict[str, str]:
    """Return the environment variables of a program; its files, the kubeconfig among them, are in `folder`."""
    # Without TZ, programs would log in the machine's own time zone.
    variables = {"TZ": "UTC"}
    if scheduler.start.clock is ClockKind.GO:
        return variables
    variables |= {
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "KUBECONFIG": str(folder / "kubeconfig"),
        "KUBERNETES_SERVICE_HOST": _HOST,
        "KUBERNETES_SERVICE_PORT": str(port),
        "BATKUBE_PROXY": f"http://{_HOST}:{port}",
        "BATKUBE_SCHEDULER_NAME": "".join(names_served(scheduler)[:1]),
        "BATKUBE_SEED": str(seed),
        # Sets of texts have another order in every process otherwise.
        "PYTHONHASHSEED": str(seed % 2**32),
        "PYTHONUNBUFFERED": "1",
    }
    if scheduler.start.clock is ClockKind.PRELOAD:
        variables["LD_PRELOAD"] = str(clock_library(cache_folder()))
    return variables
